// How many replicas have which p50: the sick ones stand apart.
import { attr, svg, text } from "./dom.js";
import { count, ms } from "./format.js";
import { Figure } from "./figure.js";
import { largest } from "./scale.js";

const BARS = 64;
const FACTOR = 1.25;  // of the upper bounds of two neighbouring bins
const HEIGHT = 130;
const LEFT = 58;
const RIGHT = 10;
const BOTTOM = 20;
const TOP = 8;

export class Histogram {
  constructor() {
    this.figure = new Figure({
      title: "Replicas by p50",
      table: [{ label: "p50 up to", class: "num" }, { label: "Replicas", class: "num" }],
      rows: BARS,
      class_name: "histogram",
    });
    this.node = this.figure.node;
    this.width = 600;
    this.bars = [];
    this.grid = [0, 1].map(() => ({ line: svg("path", { class: "grid" }), label: svg("text", { class: "axis end" }) }));
    this.marks = Array.from({ length: BARS }, () => ({ box: svg("rect", { rx: 2 }), label: svg("text", { class: "axis middle" }) }));
    this.svg = svg("svg", { role: "img", "aria-labelledby": this.figure.summary_id, height: HEIGHT },
      ...this.grid.flatMap((g) => [g.line, g.label]), ...this.marks.flatMap((m) => [m.box, m.label]));
    this.figure.canvas.append(this.svg);
    new ResizeObserver(() => this.resize()).observe(this.figure.canvas);
  }

  resize() {
    const width = Math.round(this.figure.canvas.clientWidth);
    if (width < 50 || width === this.width) return;
    this.width = width;
    this.draw();
  }

  /** `bars`: [upper p50 in ms, replicas], without the empty ones. */
  update(bars, median) {
    this.bars = with_gaps(bars);
    this.median = median;
    const all = this.bars.reduce((a, [, n]) => a + n, 0);
    const slow = this.bars.filter(([upper]) => this.slow(upper)).reduce((a, [, n]) => a + n, 0);
    this.figure.update(all === 0 ? "No replica has answered yet."
      : slow > 0 ? `${count(slow)} of ${count(all)} are at three times the median of ${ms(median)} or more.`
        : `All ${count(all)} are near the median of ${ms(median)}.`,
    () => this.bars.filter(([, n]) => n > 0).map(([upper, n]) => [ms(upper), count(n)]));
    this.draw();
  }

  slow(upper) {
    return this.median > 0 && upper > 3 * this.median;
  }

  draw() {
    attr(this.svg, "viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const most = Math.max(1, largest(this.bars.map(([, n]) => n)));
    const bottom = HEIGHT - BOTTOM;
    const step = (this.width - LEFT - RIGHT) / Math.max(8, this.bars.length);
    const every = Math.ceil(56 / step);
    [0, most].forEach((value, i) => {
      const at = Math.round(bottom - (value / most) * (bottom - TOP)) + 0.5;
      attr(this.grid[i].line, "d", `M${LEFT} ${at}H${this.width - RIGHT}`);
      attr(this.grid[i].label, "x", LEFT - 8);
      attr(this.grid[i].label, "y", at + 3.5);
      text(this.grid[i].label, count(value));
    });
    this.marks.forEach(({ box, label }, i) => {
      const bar = this.bars[i];
      attr(box, "visibility", bar ? "visible" : "hidden");
      attr(label, "visibility", bar && i % every === 0 ? "visible" : "hidden");
      if (!bar) return;
      // One replica of a thousand must be seen.
      const height = bar[1] > 0 ? Math.max(3, (bar[1] / most) * (bottom - TOP)) : 0;
      attr(box, "x", (LEFT + i * step + 1).toFixed(1));
      attr(box, "width", Math.max(1, step - 2).toFixed(1));
      attr(box, "y", (bottom - height).toFixed(1));
      attr(box, "height", height.toFixed(1));
      attr(box, "class", this.slow(bar[0]) ? "bar-slow" : "bar-usual");
      attr(label, "x", (LEFT + (i + 0.5) * step).toFixed(1));
      attr(label, "y", HEIGHT - 4);
      text(label, ms(bar[0]));
    });
  }
}

/** Empty bins between the others: distance says how much slower a replica is. */
function with_gaps(bars) {
  const found = [];
  for (const [upper, n] of bars) {
    for (let at = found.at(-1)?.[0] * FACTOR; at * Math.sqrt(FACTOR) < upper; at *= FACTOR) found.push([at, 0]);
    found.push([upper, n]);
  }
  return found.slice(0, BARS);
}
