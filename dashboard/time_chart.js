// Series over the last minutes. Paths are made once; an update only changes their data.
import { attr, el, svg, text } from "./dom.js";
import { clock, duration } from "./format.js";
import { Figure } from "./figure.js";
import { area_path, largest, line_path, round_up, step_path, sum } from "./scale.js";

const MARGIN = { top: 8, right: 10, bottom: 22, left: 58 };
const GRID = 4;
const TIMES = 4;
const THIRDS = [1, 2 / 3, 1 / 3, 0];
const MARKS = new Map([[300, [1, 3 / 5, 2 / 5, 0]]]);  // thirds of five minutes are no round times
const TABLE_ROWS = 30;

export class TimeChart {
  /**
   * `series`: [{key, label, kind, style}], drawn in this order. `kind` is "line", "step", "area"
   * (from 0) or "stack" (on the area before it). `summarise(window)` gives the sentence.
   */
  constructor({ title, series, format, summarise, height = 190, floor = 1 }) {
    this.series = series;
    this.format = format;
    this.summarise = summarise;
    this.height = height;
    this.floor = floor;
    this.width = 600;
    this.figure = new Figure({
      title,
      table: [{ label: "Time" }, ...series.map((s) => ({ label: s.label, class: "num" }))],
      rows: TABLE_ROWS,
    });
    this.node = this.figure.node;
    this.build();
    this.window = null;
    this.cursor = null;  // index into the window, null: the newest
    new ResizeObserver(() => this.resize()).observe(this.figure.canvas);
  }

  build() {
    this.grid = range(GRID + 1).map(() => ({ line: svg("path", { class: "grid" }), label: svg("text", { class: "axis end" }) }));
    this.times = range(TIMES).map(() => svg("text", { class: "axis middle" }));
    this.paths = this.series.map((s) => svg("path", { class: `series ${s.kind} ${s.style}` }));
    this.rule = svg("path", { class: "cursor", visibility: "hidden" });
    this.svg = svg("svg", { role: "img", "aria-labelledby": this.figure.summary_id, height: this.height },
      ...this.grid.flatMap((g) => [g.line, g.label]), ...this.times, ...this.paths, this.rule);
    this.figure.canvas.append(this.svg);
    this.values = this.series.map((s) => {
      const value = el("span", { class: "legend-value" });
      this.figure.legend.append(el("li", {}, el("span", { class: `swatch ${s.kind} ${s.style}`, "aria-hidden": "true" }),
        el("span", {}, s.label), value));
      return value;
    });
    this.on_point = () => {};
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.on_point(null));
  }

  point(event) {
    if (this.window === null) return;
    const { n } = this.window;
    const box = this.svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * this.width - MARGIN.left) / this.plot_width;
    this.on_point(Math.max(0, Math.min(n - 1, Math.round(share * (n - 1)))));
  }

  resize() {
    const width = Math.round(this.figure.canvas.clientWidth);
    if (width < 50 || width === this.width) return;
    this.width = width;
    if (this.window !== null) this.draw();
  }

  get plot_width() {
    return this.width - MARGIN.left - MARGIN.right;
  }

  update(window) {
    this.window = window;
    if (!this.figure.canvas.hidden) this.draw();
    this.figure.update(this.summarise(window), () => this.table_rows());
    this.show_values();
  }

  draw() {
    const { window: w } = this;
    attr(this.svg, "viewBox", `0 0 ${this.width} ${this.height}`);
    const drawn = this.layers();
    this.top = round_up(Math.max(this.floor, largest(...drawn.map((d) => d.high))));
    const bottom = this.height - MARGIN.bottom;
    const x = (i) => MARGIN.left + (i / (w.n - 1)) * this.plot_width;
    const y = (v) => bottom - (v / this.top) * (bottom - MARGIN.top);
    drawn.forEach(({ kind, low, high }, i) => {
      const path = kind === "line" ? line_path(high, x, y) : kind === "step" ? step_path(high, x, y) : area_path(low, high, x, y);
      attr(this.paths[i], "d", path);
    });
    this.draw_axes(x, y);
    this.draw_cursor(x);
  }

  layers() {
    let below = new Array(this.window.n).fill(0);
    return this.series.map((s) => {
      const values = this.window.at(s.key);
      if (s.kind === "area") {
        const low = new Array(values.length).fill(0);
        below = values;
        return { kind: s.kind, low, high: values };
      }
      if (s.kind !== "stack") return { kind: s.kind, high: values };
      const low = below;
      below = sum(below, values);
      return { kind: s.kind, low, high: below };
    });
  }

  draw_axes(x, y) {
    this.grid.forEach(({ line, label }, i) => {
      const value = (this.top * i) / GRID;
      const at = Math.round(y(value)) + 0.5;
      attr(line, "d", `M${MARGIN.left} ${at}H${this.width - MARGIN.right}`);
      attr(line, "data-base", i === 0 ? "" : null);
      attr(label, "x", MARGIN.left - 8);
      attr(label, "y", at + 3.5);
      text(label, this.format(value));
    });
    this.times.forEach((label, i) => {
      const seconds = Math.round(this.window.n * (MARKS.get(this.window.n) ?? THIRDS)[i]);
      attr(label, "x", x(Math.max(0, this.window.n - 1 - seconds)));
      attr(label, "y", this.height - 5);
      attr(label, "data-edge", i === 0 ? "start" : i === TIMES - 1 ? "end" : null);
      text(label, seconds === 0 ? "now" : `−${duration(seconds)}`);
    });
  }

  draw_cursor(x) {
    attr(this.rule, "visibility", this.cursor === null ? "hidden" : "visible");
    if (this.cursor === null) return;
    const at = Math.round(x(this.cursor)) + 0.5;
    attr(this.rule, "d", `M${at} ${MARGIN.top}V${this.height - MARGIN.bottom}`);
  }

  /** Shows the values of second `index` of the window; null: the newest. */
  look_at(index) {
    this.cursor = index;
    if (this.window === null) return;
    this.draw_cursor((i) => MARGIN.left + (i / (this.window.n - 1)) * this.plot_width);
    this.show_values();
  }

  show_values() {
    const index = this.cursor ?? this.window.n - 1;
    this.series.forEach((s, i) => text(this.values[i], this.format(this.window.at(s.key)[index])));
  }

  /** The window as at most thirty rows, newest first. */
  table_rows() {
    const { n, end } = this.window;
    const step = Math.max(1, Math.ceil(n / TABLE_ROWS));
    const rows = [];
    for (let i = n - 1; i >= 0 && rows.length < TABLE_ROWS; i -= step) {
      rows.push([clock(end - (n - 1 - i)), ...this.series.map((s) => this.format(this.window.at(s.key)[i]))]);
    }
    return rows;
  }
}

function range(n) {
  return Array.from({ length: n }, (_, i) => i);
}
