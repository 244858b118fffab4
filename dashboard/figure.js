// A chart's frame: title, legend, one sentence that says what is to be seen, and the same as a
// table. The chart itself is an image to whoever cannot see it.
import { el, show, text } from "./dom.js";
import { Table } from "./table.js";

let last_id = 0;

export class Figure {
  /** `table`: columns of the table form, as Table takes them; `rows`: most rows of it. */
  constructor({ title, table, rows, class_name = "" }) {
    last_id += 1;
    this.summary = el("p", { class: "summary", id: `summary-${last_id}` });
    this.legend = el("ul", { class: "legend" });
    this.canvas = el("div", { class: "canvas" });
    this.table = new Table({ caption: title, columns: table, rows });
    this.table.node.hidden = true;
    this.button = el("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: () => this.toggle() },
      "As table");
    this.node = el("figure", { class: `chart ${class_name}`.trim() },
      el("figcaption", {}, el("h3", {}, title), this.button),
      this.summary, this.legend, this.canvas, this.table.node);
    this.fill_table = () => {};
  }

  toggle() {
    const open = this.table.node.hidden;
    show(this.table.node, open);
    show(this.canvas, !open);
    show(this.legend, !open);
    this.button.setAttribute("aria-expanded", String(open));
    text(this.button, open ? "As chart" : "As table");
    if (open) this.fill_table();
  }

  /** `rows` makes the rows of the table; it is called only while the table is shown. */
  update(summary, rows) {
    text(this.summary, summary);
    this.fill_table = () => this.table.update(rows());
    if (!this.table.node.hidden) this.fill_table();
  }

  get summary_id() {
    return this.summary.id;
  }
}
