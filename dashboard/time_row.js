// Charts that share their time: how much is shown, and the second that is looked at. The slider
// does by keyboard what pointing at a chart does.
import { el, show, text } from "./dom.js";
import { clock, duration } from "./format.js";

const SPANS = [60, 300, 900];

export class TimeRow {
  constructor(charts) {
    this.charts = charts;  // TimeCharts
    this.others = [];      // what else follows the span: has update(window)
    this.span = 900;
    this.chosen = false;   // until then the shortest span that holds all that is known
    this.history = null;
    this.behind = 0;       // seconds before the newest; 0: the newest
    this.buttons = SPANS.map((span) => el("button", { type: "button", "aria-pressed": String(span === this.span), onclick: () => this.choose(span) },
      duration(span)));
    this.slider = el("input", { type: "range", min: "-899", max: "0", value: "0", "aria-label": "Second that the charts show" });
    this.slider.addEventListener("input", () => this.look_back(-Number(this.slider.value)));
    this.label = el("span", { class: "looked-at" });
    this.back = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.look_back(0) }, "Back to now");
    this.node = el("div", { class: "time-row" },
      el("div", { class: "segments", role: "group", "aria-label": "Time shown" }, ...this.buttons),
      this.slider, this.label, this.back);
    for (const chart of charts) chart.on_point = (index) => this.hover(index);
    this.describe();
  }

  choose(span) {
    this.chosen = true;
    this.set_span(span);
    if (this.history) this.update(this.history);
  }

  set_span(span) {
    if (span === this.span) return;
    this.span = span;
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(SPANS[i] === span)));
    this.slider.min = String(1 - span);
    this.look_back(Math.min(this.behind, span - 1));
  }

  look_back(seconds) {
    this.behind = seconds;
    if (Number(this.slider.value) !== -seconds) this.slider.value = String(-seconds);
    this.apply(seconds === 0 ? null : this.span - 1 - seconds);
  }

  hover(index) {
    this.apply(index ?? (this.behind === 0 ? null : this.span - 1 - this.behind));
  }

  apply(index) {
    for (const chart of this.charts) chart.look_at(index);
    this.describe(index);
  }

  describe(index = null) {
    const seconds = index === null ? 0 : this.span - 1 - index;
    const words = seconds === 0 ? "now" : `${clock((this.history?.end ?? 0) - seconds)}, ${duration(seconds)} ago`;
    text(this.label, words);
    this.slider.setAttribute("aria-valuetext", words);
    show(this.back, this.behind !== 0);
  }

  update(history) {
    this.history = history;
    if (!this.chosen) this.set_span(SPANS.find((span) => span >= history.rows.length) ?? SPANS.at(-1));
    const window = history.window(this.span);
    for (const chart of this.charts) chart.update(window);
    for (const other of this.others) other.update(window);
    return window;
  }
}
