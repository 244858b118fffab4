// What the verdict was, second by second: what came before is the first question after an alarm.
import { attr, el, svg, text } from "./dom.js";
import { clock, duration, sentence } from "./format.js";
import { Figure } from "./figure.js";
import { runs } from "./history.js";
import { cause_facts } from "./verdict_words.js";

const RUNS = 40;  // more changes than this in a quarter of an hour: the oldest are left out
const HEIGHT = 26;
const LEFT = 58;
const RIGHT = 10;

export class VerdictStrip {
  constructor() {
    this.figure = new Figure({
      title: "Verdict over time",
      table: [{ label: "From" }, { label: "Verdict" }, { label: "For", class: "num" }],
      rows: RUNS,
      class_name: "strip",
    });
    this.node = this.figure.node;
    this.width = 600;
    this.runs = [];
    this.window = null;
    this.marks = Array.from({ length: RUNS }, () => ({ box: svg("rect", { y: 1, height: HEIGHT - 2, rx: 3 }), label: svg("text", { y: HEIGHT / 2 + 4 }) }));
    this.svg = svg("svg", { role: "img", "aria-labelledby": this.figure.summary_id, height: HEIGHT },
      ...this.marks.flatMap((m) => [m.box, m.label]));
    this.figure.canvas.append(this.svg);
    new ResizeObserver(() => this.resize()).observe(this.figure.canvas);
  }

  resize() {
    const width = Math.round(this.figure.canvas.clientWidth);
    if (width < 50 || width === this.width) return;
    this.width = width;
    if (this.window !== null) this.draw();
  }

  update(window) {
    this.window = window;
    this.runs = runs(window.at("cause")).slice(-RUNS);
    this.draw();
    this.figure.update(this.summary(), () => this.runs.map(([first, last, cause]) =>
      [clock(window.end - (window.n - 1 - first)), cause_facts(cause).label, duration(last - first + 1)]).reverse());
  }

  summary() {
    const now = this.runs[this.runs.length - 1];
    if (now === undefined) return "Nothing is known yet.";
    const before = this.runs[this.runs.length - 2];
    const for_s = duration(now[1] - now[0] + 1);
    const label = cause_facts(now[2]).label;
    return sentence(before === undefined ? `${label} for at least ${for_s}.`
      : `${label} for ${for_s}; before that ${cause_facts(before[2]).label}.`);
  }

  draw() {
    attr(this.svg, "viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const scale = (this.width - LEFT - RIGHT) / this.window.n;
    this.marks.forEach(({ box, label }, i) => {
      const run = this.runs[i];
      attr(box, "visibility", run ? "visible" : "hidden");
      attr(label, "visibility", run ? "visible" : "hidden");
      if (!run) return;
      const [first, last, cause] = run;
      const width = Math.max(1.5, (last - first + 1) * scale - 1);
      attr(box, "x", (LEFT + first * scale).toFixed(1));
      attr(box, "width", width.toFixed(1));
      attr(box, "class", cause === "fine" ? "run-fine" : cause === "unclear" ? "run-unclear" : "run-trouble");
      const words = cause_facts(cause).label;
      attr(label, "x", (LEFT + first * scale + 7).toFixed(1));
      attr(label, "class", cause === "fine" ? "run-text fine" : "run-text");
      text(label, width > words.length * 8 + 14 ? words : "");
    });
  }
}
