// The headline of every page: whose fault it is, what to do, and the numbers that show it.
// One polite live region: it is read out when the verdict changes, not when its numbers do.
import { attr, el, show, text } from "./dom.js";
import { badge } from "./icons.js";
import { cause_facts, evidence, headline, PLACES } from "./verdict_words.js";

const PAGE_WORDS = { refusals: "Refusals", limit: "Limit", replicas: "Replicas", memory: "Memory" };

export class VerdictPanel {
  constructor(section) {
    this.section = section;
    this.state = badge(22);
    this.upstream = el("span", { class: "verdict-upstream" });
    this.since = el("span", { class: "verdict-since", "aria-live": "off" });
    this.sentence = el("h1", { class: "verdict-sentence" }, "Waiting for the gateway");
    this.step = el("span");
    this.more = el("a", { class: "verdict-more", hidden: true });
    this.urgent = el("strong", {}, "Do now");
    this.next = el("p", { class: "verdict-next", hidden: true }, this.urgent, " ", this.step, " ", this.more);
    this.places = PLACES.map((place) => {
      const here = el("span", { class: "here", hidden: true }, "cause");
      return { node: el("li", {}, el("span", {}, place), here), here };
    });
    this.evidence = evidence({}).map((e) => ({
      key: e.key, value: el("dd", { class: "value" }), note: el("dd", { class: "note" }), node: null, label: e.label,
    }));
    for (const e of this.evidence) e.node = el("div", {}, el("dt", {}, e.label), e.value, e.note);
    this.region = el("div", { class: "verdict-region", role: "status", "aria-live": "polite", "aria-atomic": "true" },
      el("p", { class: "verdict-head" }, this.state, this.upstream, this.since),
      this.sentence, this.next,
      el("ol", { class: "places", "aria-label": "Where the cause is" }, ...this.places.map((p) => p.node)),
      el("dl", { class: "evidence", "aria-live": "off" }, ...this.evidence.map((e) => e.node)));
    section.append(this.region);
    this.state.set("none", "Connecting");
  }

  /** `page` is the one that is shown: no link leads to itself. */
  update(tick, page) {
    const words = headline(tick);
    const facts = cause_facts(tick.verdict?.cause);
    attr(this.section, "data-state", words.state);
    this.state.set(words.state, words.word);
    text(this.upstream, words.upstream);
    text(this.since, words.since);
    text(this.sentence, words.sentence);
    show(this.next, words.next_step !== "");
    show(this.urgent, tick.verdict?.cause !== "fine");
    text(this.step, words.next_step);
    show(this.more, facts.page !== null && facts.page !== page);
    if (facts.page !== null) {
      attr(this.more, "href", `#${facts.page}`);
      text(this.more, `See ${PAGE_WORDS[facts.page]}`);
    }
    this.places.forEach(({ node, here }, i) => {
      attr(node, "data-cause", facts.place === i ? "" : null);
      show(here, facts.place === i);
    });
    evidence(tick).forEach((e, i) => {
      text(this.evidence[i].value, e.value);
      text(this.evidence[i].note, e.note);
      attr(this.evidence[i].node, "data-key", facts.key === e.key ? "" : null);
    });
  }
}
