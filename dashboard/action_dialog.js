// Asks before an action: what it would do (a dry run, always), then whether to do it.
import { attr, el, show, text } from "./dom.js";
import { words } from "./format.js";

export class ActionDialog {
  constructor(actions) {
    this.actions = actions;
    this.title = el("h2", { id: "action-title" });
    this.words = el("p");
    this.fields = el("div", { class: "fields-form" });
    this.token = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false" });
    this.token_row = el("label", { for: "token" }, "Token (from the link that starts the dashboard with actions)", this.token);
    this.force = el("input", { id: "force", type: "checkbox" });
    this.force_row = el("label", { for: "force", class: "check" }, this.force, "Do it all the same");
    this.preview = el("div", { class: "preview", role: "status" });
    this.confirm = el("button", { type: "submit", class: "primary" });
    this.cancel = el("button", { type: "button", onclick: () => this.node.close() }, "Cancel");
    this.node = el("dialog", { "aria-labelledby": "action-title" },
      el("form", { onsubmit: (event) => { event.preventDefault(); this.submit(); } },
        this.title, this.words, this.token_row, this.fields, this.preview, this.force_row,
        el("div", { class: "buttons" }, this.cancel, this.confirm)));
    this.fields.addEventListener("input", () => this.previewed(false));
    this.force.addEventListener("input", () => this.previewed(false));
    document.body.append(this.node);
  }

  open(request) {
    this.request = request;
    this.inputs = request.fields.map(field);
    text(this.title, request.title);
    text(this.words, request.words ?? "");
    this.fields.replaceChildren(...this.inputs.map((input) => input.node));
    show(this.token_row, this.actions.token === "");
    show(this.force_row, false);
    this.force.checked = false;
    text(this.preview, "");
    this.previewed(false);
    this.node.showModal();
    if (this.actions.token !== "") this.submit();
  }

  /** The same button first shows what would happen, then does it. */
  previewed(done) {
    this.ready = done;
    text(this.confirm, done ? this.request.verb : "Preview");
    attr(this.confirm, "data-final", done ? "" : null);
  }

  body() {
    const body = { ...this.request.body };
    for (const input of this.inputs) body[input.name] = Number(input.control.value);
    if (this.force.checked) body.force = true;
    return body;
  }

  async submit() {
    if (this.token.value !== "") this.actions.token = this.token.value.trim();
    const dry_run = !this.ready;
    this.confirm.disabled = true;
    const { ok, status, answer } = await this.actions.send(this.request.path, { ...this.body(), ...(dry_run && { dry_run: true }) });
    this.confirm.disabled = false;
    if (ok && !dry_run) return this.node.close();
    attr(this.preview, "data-tone", ok ? "good" : "bad");
    text(this.preview, preview_words(answer, status));
    if (status === 401 || status === 403) {
      this.actions.token = "";
      this.token.value = "";
      show(this.token_row, true);
    }
    if (!ok && this.request.can_force && status === 409) show(this.force_row, true);
    this.previewed(ok);
    if (ok) this.confirm.focus();
  }
}

function field({ name, label, choices, number, min, max, value }) {
  const id = `action-${name}`;
  const control = choices
    ? el("select", { id }, ...choices.map(([v, words_]) => el("option", { value: v, selected: v === value }, words_)))
    : el("input", { id, type: number ? "number" : "text", min, max, value: String(value ?? ""), required: true });
  return { name, control, node: el("label", { for: id }, label, control) };
}

/** The sentence of the answer, if it has one, and else all it says. */
function preview_words(answer, status) {
  if (typeof answer === "string") return answer.trim() || `status ${status}`;
  const said = answer.preview ?? answer.sentence ?? answer.error ?? answer.message;
  if (typeof said === "string") return said;
  return Object.entries(said ?? answer).filter(([, v]) => typeof v !== "object").map(([k, v]) => `${words(k)}: ${v}`).join("; ");
}
