// What is in force?
import { el, show, text } from "./dom.js";
import { CopyBox } from "./copy_box.js";
import { duration } from "./format.js";
import { Table } from "./table.js";

const NAMES = 64;

export class ConfigPage {
  constructor() {
    this.view = "config";
    this.changed = names_list("Changed since the start", "Nothing was changed since the start.");
    this.waiting = names_list("Waits for a restart", "Nothing waits for a restart.");
    this.overrides = new Table({
      caption: "Overrides",
      rows: 16,
      empty: "No override is in force.",
      columns: [{ label: "What", class: "long" }, { label: "Kind" }, { label: "Ends in", class: "num" }],
    });
    this.text = new CopyBox("As TOML");
    this.text.set("…");
    this.node = el("div", { class: "page" },
      el("div", { class: "three" }, this.panel("Overrides", this.overrides.node), this.changed.node, this.waiting.node),
      this.panel("Configuration in force", this.text.node));
  }

  panel(title, node) {
    return el("section", { class: "panel" }, el("h2", {}, title), node);
  }

  tick(tick) {
    this.overrides.update((tick.overrides ?? []).slice(0, 16).map((o) => [o.what, o.kind, duration(o.left_s)]));
    if (tick.config === undefined) return;
    this.text.set(tick.config.text ?? "");
    this.changed.set(tick.config.changed_since_start ?? []);
    this.waiting.set(tick.config.needs_restart ?? []);
  }
}

function names_list(title, none) {
  const rows = Array.from({ length: NAMES }, () => el("li", { hidden: true, class: "mono" }));
  const empty = el("p", { class: "empty" }, none);
  return {
    node: el("section", { class: "panel" }, el("h2", {}, title), el("ul", { class: "names" }, ...rows), empty),
    set: (names) => {
      show(empty, names.length === 0);
      rows.forEach((row, i) => {
        show(row, names[i] !== undefined);
        text(row, names[i]);
      });
    },
  };
}
