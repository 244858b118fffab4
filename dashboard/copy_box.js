// Text to take along: shown as it is, with a button that copies it.
import { el, text } from "./dom.js";

export class CopyBox {
  constructor(label) {
    this.code = el("code");
    this.block = el("pre", { tabindex: "0", role: "region", "aria-label": label }, this.code);
    this.said = el("span", { class: "copied", role: "status" });
    this.node = el("div", { class: "copy-box" },
      el("div", { class: "copy-head" }, el("span", {}, label), this.said, el("button", { type: "button", class: "quiet", onclick: () => this.copy() }, "Copy")),
      this.block);
  }

  set(value) {
    this.value = value;
    text(this.code, value);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.value);
      text(this.said, "Copied");
    } catch {  // not allowed without TLS, or by the operator: select it instead
      getSelection().selectAllChildren(this.code);
      text(this.said, "Selected: press Ctrl-C");
    }
    setTimeout(() => text(this.said, ""), 4000);
  }
}
