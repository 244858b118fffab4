// Above every page: the gateway is gone or drains, something is overridden for a while.
import { el, show, text } from "./dom.js";
import { duration } from "./format.js";
import { icon } from "./icons.js";

const OVERRIDES = 16;  // more are counted, not listed

export class Banners {
  /** `remove(override)` ends one early, and is offered only if `may_act()`; `try_now` looks for the gateway. */
  constructor(node, { may_act, remove, try_now }) {
    this.may_act = may_act;
    this.gone_words = el("span");
    this.age = el("span", { class: "age", "aria-live": "off" });
    this.gone = el("p", { class: "banner gone", role: "alert", hidden: true }, icon("bad"), this.gone_words,
      el("button", { type: "button", class: "quiet", onclick: try_now }, "Try now"), this.age);
    this.drain = el("p", { class: "banner drain", hidden: true }, icon("drain"),
      el("span", {}, "Draining: this gateway takes no new connections and ends when its requests have finished."));
    this.rows = Array.from({ length: OVERRIDES }, () => this.make_row(remove));
    this.more = el("li", { hidden: true });
    this.overrides = el("div", { class: "banner override", hidden: true },
      icon("warn"), el("strong", {}, "Overrides"), el("ul", {}, ...this.rows.map((row) => row.node), this.more));
    node.append(this.gone, this.drain, this.overrides);
  }

  make_row(remove) {
    const row = { words: el("span"), left: el("span", { class: "left" }), override: null };
    row.button = el("button", { type: "button", class: "quiet", onclick: () => remove(row.override) }, "End now");
    row.node = el("li", { hidden: true }, row.words, row.left, row.button);
    return row;
  }

  tick(tick) {
    show(this.drain, tick.draining === true);
    const overrides = tick.overrides ?? [];
    show(this.overrides, overrides.length > 0);
    this.rows.forEach((row, i) => {
      const override = overrides[i];
      show(row.node, override !== undefined);
      if (override === undefined) return;
      row.override = override;
      text(row.words, `${override.kind}: ${override.what}`);
      text(row.left, `ends in ${duration(override.left_s)}`);
      show(row.button, this.may_act());
    });
    show(this.more, overrides.length > OVERRIDES);
    text(this.more, `and ${overrides.length - OVERRIDES} more`);
  }

  /** `state` as Stream says it. */
  link(state, seconds) {
    const lost = state === "late" || state === "gone" || state === "full";
    show(this.gone, lost);
    if (!lost) return;
    text(this.gone_words, state === "full"
      ? "The gateway answers, but eight others watch it already: close one of them. Trying again."
      : "The gateway does not answer: what is below is old. Trying again.");
    text(this.age, `no data for ${duration(seconds)}`);
  }
}
