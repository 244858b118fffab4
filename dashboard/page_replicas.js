// Which replica is sick? The gateway sorts and pages; this page shows fifty rows at most.
import { attr, el, show, text } from "./dom.js";
import { count, duration, ms, num, rate, sentence, times, words } from "./format.js";
import { spark_cell, state_cell } from "./cells.js";
import { facts } from "./page_limit.js";
import { Histogram } from "./histogram.js";
import { tone } from "./icons.js";
import { ReplicaRows } from "./replica_rows.js";
import { Table } from "./table.js";

const ROWS = 50;
const SORTS = [["worst", "worst first"], ["name", "name"], ["p99", "p99"], ["in_flight", "in flight"]];

export class ReplicasPage {
  constructor({ actions, reopen }) {
    this.view = "replicas";
    this.reopen = reopen;
    this.actions = actions;
    this.asked = { sort: "worst", filter: "", bad: false, from: 0 };
    this.rows = new ReplicaRows();
    this.order = [];
    this.make_controls();
    this.facts = facts(["Replicas", "Bad", "p50 of all", "p99 of all"]);
    this.histogram = new Histogram();
    this.table = new Table({
      caption: "Replicas",
      rows: ROWS,
      empty: "No replica matches.",
      columns: [
        { label: "Endpoint", class: "long", cell: () => endpoint_cell(actions) },
        { label: "State", cell: state_cell },
        { label: "p50", class: "num" },
        { label: "× median", class: "num", cell: ratio_cell, hint: "p50 against the median of all replicas" },
        { label: "p99", class: "num" },
        { label: "In flight", class: "num" },
        { label: "Failures", class: "num" },
        { label: "Hedges won", class: "num wide", hint: "of those sent" },
        { label: "Weight", class: "num wide" },
        { label: "Zone", class: "wide" },
        { label: "p50, 20 s", class: "wide", cell: () => spark_cell(72, 20) },
      ],
    });
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" }, el("h2", {}, "All replicas"), this.facts.node, this.histogram.node),
      el("section", { class: "panel" },
        el("div", { class: "panel-head" }, el("h2", {}, "One by one"), this.controls), this.table.node, this.pager));
  }

  make_controls() {
    this.sort = el("select", { id: "sort", onchange: () => this.ask({ sort: this.sort.value, from: 0 }) },
      ...SORTS.map(([value, label]) => el("option", { value }, label)));
    this.filter = el("input", { id: "filter", type: "search", placeholder: "part of a name", autocomplete: "off", spellcheck: "false" });
    this.filter.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.ask({ filter: this.filter.value.trim(), from: 0 }), 250);
    });
    this.bad = el("input", { id: "bad", type: "checkbox", onchange: () => this.ask({ bad: this.bad.checked, from: 0 }) });
    this.controls = el("div", { class: "controls" },
      el("label", { for: "filter" }, "Filter", this.filter), el("label", { for: "sort" }, "Sort by", this.sort),
      el("label", { for: "bad", class: "check" }, this.bad, "Only bad"));
    this.range = el("span", { class: "range", "aria-live": "polite" });
    this.held = el("span", { class: "held", hidden: true }, "Order held while you point at the table");
    this.before = el("button", { type: "button", onclick: () => this.ask({ from: Math.max(0, this.asked.from - ROWS) }) }, "Previous");
    this.after = el("button", { type: "button", onclick: () => this.ask({ from: this.asked.from + ROWS }) }, "Next");
    this.pager = el("div", { class: "pager" }, this.before, this.range, this.after, this.held);
  }

  ask(change) {
    Object.assign(this.asked, change);
    this.reopen();
  }

  /** Parameters of the stream besides view and upstream. */
  parameters() {
    const { sort, filter, bad, from } = this.asked;
    return { sort, rows: ROWS, from, ...(filter && { filter }), ...(bad && { bad: 1 }) };
  }

  hello() {
    this.rows.clear();
    this.order = [];
  }

  tick(tick) {
    const r = tick.replicas;
    if (r === undefined) return;
    this.rows.take(r, tick.now);
    this.hold_order(r.order);
    this.facts.set([count(r.total), count(r.bad), ms(r.cohort_p50_ms), ms(r.cohort_p99_ms)]);
    this.histogram.update(r.histogram ?? [], r.cohort_p50_ms);
    const shown = this.order.map((id) => this.rows.get(id)).filter((row) => row !== undefined);
    this.table.update(shown.map((row) => cells(row, r.cohort_p50_ms, tick.now)), shown.map((row) => tone(row.state)));
    const last = r.from + r.order.length;
    text(this.range, r.matching === 0 ? "none" : `${count(r.from + 1)} to ${count(last)} of ${count(r.matching)}`);
    attr(this.before, "disabled", r.from > 0 ? null : "");
    attr(this.after, "disabled", last < r.matching ? null : "");
  }

  /** A row must not move away under a pointer or the focus. */
  hold_order(order) {
    const same = this.order.length === order.length && [...this.order].sort().join() === [...order].sort().join();
    const hold = same && this.order.join() !== order.join() && this.table.body.matches(":hover, :focus-within");
    if (!hold) this.order = order;
    show(this.held, hold);
  }
}

function cells(row, median, now) {
  const ratio = row.p50_ms / median;
  return [
    row.endpoint,
    { state: row.state, label: sentence(words(row.state)), note: why(row, now) },
    ms(row.p50_ms), { ratio }, ms(row.p99_ms), num(row.in_flight),
    row.failures_per_s > 0 ? rate(row.failures_per_s) : "0",
    row.hedges > 0 ? `${num(row.hedge_wins)} of ${num(row.hedges)}` : "–",
    num(row.weight), row.zone, { line: row.spark },
  ];
}

function why(row, now) {
  if (tone(row.state) === "good") return "";
  return [words(row.reason), duration(now - row.since)].filter(Boolean).join(", ");
}

function ratio_cell() {
  const node = el("span", { class: "ratio" });
  return {
    node,
    set: ({ ratio }) => {
      text(node, Number.isFinite(ratio) ? times(ratio) : "–");
      attr(node, "data-tone", ratio >= 3 ? "bad" : ratio >= 1.5 ? "warn" : null);
    },
  };
}

function endpoint_cell(actions) {
  const name = el("span", { class: "mono" });
  const button = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => actions.drain(name.firstChild.data, button.dataset.drained === "") }, "Drain");
  return {
    node: el("span", { class: "with-action" }, name, button),
    set: (value) => {
      text(name, value);
      show(button, actions.offered());
      const drained = actions.drained(value);
      attr(button, "data-drained", drained ? "" : null);
      text(button, drained ? "Undrain" : "Drain");
    },
  };
}
