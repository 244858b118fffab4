// Throughput and p99 over what was in flight: where more in flight stops to give more answers is
// the knee, and a good limit is near it. Two panels share the horizontal axis.
import { attr, el, svg, text } from "./dom.js";
import { duration, ms, num, rate } from "./format.js";
import { Figure } from "./figure.js";
import { largest, line_path, round_up } from "./scale.js";

const BINS = 32;
const LEFT = 64;
const RIGHT = 16;
const PANEL = 150;
const GAP = 26;
const HEIGHT = 2 * PANEL + GAP + 26;
const TICKS = 5;

export class KneeChart {
  constructor() {
    this.figure = new Figure({
      title: "Throughput and p99 over in flight",
      table: [{ label: "In flight", class: "num" }, { label: "Answered", class: "num" }, { label: "p99", class: "num" }, { label: "Seen for", class: "num" }],
      rows: BINS,
      class_name: "knee",
    });
    this.node = this.figure.node;
    this.width = 600;
    this.bins = [];
    this.panels = [panel("admitted", "circle"), panel("p99", "diamond")];
    this.limit = svg("path", { class: "limit-line" });
    this.limit_label = svg("text", { class: "limit-label" });
    this.ticks = Array.from({ length: TICKS }, () => svg("text", { class: "axis middle" }));
    this.titles = ["Answered per second", "p99 of answers"].map((words, i) =>
      svg("text", { class: "panel-title", x: LEFT, y: 12 + i * (PANEL + GAP) }, words));
    this.axis_title = svg("text", { class: "axis end", y: HEIGHT - 6 }, "in flight");
    this.svg = svg("svg", { role: "img", "aria-labelledby": this.figure.summary_id, height: HEIGHT },
      ...this.panels.flatMap((p) => p.nodes), this.limit, this.limit_label, ...this.ticks, ...this.titles, this.axis_title);
    this.figure.canvas.append(this.svg);
    new ResizeObserver(() => this.resize()).observe(this.figure.canvas);
  }

  resize() {
    const width = Math.round(this.figure.canvas.clientWidth);
    if (width < 50 || width === this.width) return;
    this.width = width;
    this.draw();
  }

  /** `bins`: [in flight, answered per second, p99 ms, seconds seen], by in flight. */
  update(bins, limit, sentence) {
    this.bins = bins.slice(0, BINS);
    this.limit_now = limit;
    const words = sentence ? `${sentence[0].toUpperCase()}${sentence.slice(1)}.` : "Too little was seen to say whether another limit is better.";
    this.figure.update(words, () => this.bins.map(([n, answered, p99, seen]) => [num(n), rate(answered), ms(p99), duration(seen)]));
    this.draw();
  }

  draw() {
    const right = this.width - RIGHT;
    attr(this.svg, "viewBox", `0 0 ${this.width} ${HEIGHT}`);
    attr(this.axis_title, "x", right);
    const last = round_up(Math.max(4, this.limit_now || 0, largest(this.bins.map((b) => b[0]))));
    const x = (n) => LEFT + (n / last) * (right - LEFT);
    const xs = this.bins.map((b) => x(b[0]));
    const most_seen = Math.max(1, largest(this.bins.map((b) => b[3])));
    const sizes = this.bins.map((b) => 2 + 3.5 * Math.sqrt(b[3] / most_seen));
    this.draw_panel(this.panels[0], 18, this.bins.map((b) => b[1]), num, xs, sizes);
    this.draw_panel(this.panels[1], 18 + PANEL + GAP, this.bins.map((b) => b[2]), ms, xs, sizes);
    this.ticks.forEach((tick, i) => {
      const value = (last * i) / TICKS;
      attr(tick, "x", x(value));
      attr(tick, "y", HEIGHT - 6);
      attr(tick, "visibility", x(value) > right - 72 && i > 0 ? "hidden" : "visible");  // the title is there
      text(tick, num(value));
    });
    const known = this.limit_now > 0;
    attr(this.limit, "visibility", known ? "visible" : "hidden");
    attr(this.limit_label, "visibility", known ? "visible" : "hidden");
    if (!known) return;
    const at = Math.round(x(this.limit_now)) + 0.5;
    attr(this.limit, "d", `M${at} 18V${HEIGHT - 22}`);
    const far = at > right - 90;
    attr(this.limit_label, "x", far ? at - 6 : at + 6);
    attr(this.limit_label, "y", 30);
    attr(this.limit_label, "data-edge", far ? "end" : null);
    text(this.limit_label, `limit ${num(this.limit_now)}`);
  }

  draw_panel(p, top, values, format, xs, sizes) {
    const bottom = top + PANEL - 18;
    const most = round_up(largest(values));
    const y = (v) => bottom - (v / most) * (bottom - top);
    [0, 0.5, 1].forEach((share, i) => {
      const at = Math.round(y(share * most)) + 0.5;
      attr(p.grid[i].line, "d", `M${LEFT} ${at}H${this.width - RIGHT}`);
      attr(p.grid[i].label, "x", LEFT - 8);
      attr(p.grid[i].label, "y", at + 3.5);
      text(p.grid[i].label, format(share * most));
    });
    attr(p.line, "d", line_path(values, (i) => xs[i], y));
    attr(p.dots, "d", values.map((v, i) => p.mark(xs[i], y(v), sizes[i])).join(""));
  }
}

const MARKS = {
  circle: (x, y, r) => `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  diamond: (x, y, r) => `M${x.toFixed(1)} ${(y - r - 0.6).toFixed(1)}l${r + 0.6} ${r + 0.6}l${-r - 0.6} ${r + 0.6}l${-r - 0.6} ${-r - 0.6}Z`,
};

function panel(style, shape) {
  const grid = [0, 1, 2].map(() => ({ line: svg("path", { class: "grid" }), label: svg("text", { class: "axis end" }) }));
  const line = svg("path", { class: `series line ${style}` });
  const dots = svg("path", { class: `dots ${style}` });
  return { grid, line, dots, mark: MARKS[shape], nodes: [...grid.flatMap((g) => [g.line, g.label]), line, dots] };
}
