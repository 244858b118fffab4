// A table whose rows are built once and then only change their text: updates create no nodes.
import { el, show, text } from "./dom.js";

export class Table {
  /**
   * `columns`: [{label, class, hint, cell}]; `cell` is "text" (default: the row's value as text) or
   * a function that makes {node, set(value)}. `rows`: how many rows there can be; `empty`: what is
   * said instead of no rows; `key`: the index of the column that names the row.
   */
  constructor({ caption, columns, rows, empty = "Nothing", key = 0, class_name = "" }) {
    this.columns = columns;
    this.empty = el("p", { class: "empty" }, empty);
    this.head = el("tr", {}, ...columns.map((column) =>
      el("th", { scope: "col", class: column.class, title: column.hint }, column.label)));
    this.body = el("tbody");
    this.rows = [];
    for (let i = 0; i < rows; ++i) this.rows.push(this.make_row(key));
    this.table = el("table", {}, el("caption", { class: "only-read" }, caption), el("thead", {}, this.head), this.body);
    this.scroll = el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, this.table);
    this.node = el("div", { class: `table ${class_name}`.trim() }, this.scroll, this.empty);
    this.update([]);
  }

  make_row(key) {
    const cells = this.columns.map((column, index) => {
      const node = index === key ? el("th", { scope: "row", class: column.class }) : el("td", { class: column.class });
      if (column.cell === undefined) return { node, set: (value) => text(node, value) };
      const inner = column.cell();
      node.append(inner.node);
      return { node, set: (value) => inner.set(value) };
    });
    const node = el("tr", { hidden: true }, ...cells.map((cell) => cell.node));
    this.body.append(node);
    return { node, cells };
  }

  /** Each row is a list of values, one for each column; `tones` marks rows: "good", "warn", "bad". */
  update(rows, tones = []) {
    show(this.empty, rows.length === 0);
    show(this.scroll, rows.length !== 0);
    this.rows.forEach((row, index) => {
      const values = rows[index];
      show(row.node, values !== undefined);
      if (values === undefined) return;
      values.forEach((value, column) => row.cells[column].set(value));
      const tone = tones[index] ?? "";
      if ((row.node.dataset.tone ?? "") !== tone) row.node.dataset.tone = tone;
    });
  }
}
