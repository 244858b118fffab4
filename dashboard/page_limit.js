// Is the limit right?
import { attr, el, show, text } from "./dom.js";
import { clock, ms, num, times, words } from "./format.js";
import { KneeChart } from "./knee_chart.js";
import { Table } from "./table.js";
import { TimeChart } from "./time_chart.js";
import { TimeRow } from "./time_row.js";
import { sum } from "./scale.js";

const MOVES = 30;

const REASONS = {
  hold: "the queue is as wanted",
  no_samples: "too few answers to judge",
  grow: "no queue, and the limit was used",
  not_used: "it was not used",
  queueing: "latency shows a queue",
  overload: "the service said that it is overloaded",
  at_floor: "at its minimum",
  at_ceiling: "at its maximum",
  starting: "fast growth after the start",
  probe: "lowered to measure the latency without a queue",
  probe_ended: "the measurement is over",
  peak_bound: "bounded by what was used lately",
  configured: "set by configuration",
};

// Those that can raise the limit, and those that can lower it.
const RAISES = new Set(["grow", "starting", "probe_ended", "at_ceiling", "configured", "at_floor"]);
const LOWERS = new Set(["queueing", "overload", "probe", "peak_bound", "at_floor", "configured", "not_used", "at_ceiling"]);

export function reason_words(reason) {
  return REASONS[reason] ?? words(reason);
}

/** A move is what became of the limit in a second; its reason is that of the last of several steps. */
export function move_words({ from, to, reason }) {
  const explains = to > from ? RAISES : LOWERS;
  return explains.has(reason) ? `${to > from ? "↑" : "↓"} ${reason_words(reason)}` : `${to > from ? "↑" : "↓"} in several steps; the last: ${reason_words(reason)}`;
}

export class LimitPage {
  constructor({ actions }) {
    this.view = "limit";
    this.facts = facts(["Limit", "Because", "In flight", "Demand", "Least and most"]);
    this.cap = el("button", { type: "button", hidden: true, onclick: () => actions.cap(this.upstream) }, "Cap this limit…");
    this.may_act = () => actions.offered();
    this.demand = demand_chart();
    this.latency = slowdown_chart();
    this.time = new TimeRow([this.demand, this.latency]);
    this.knee = new KneeChart();
    this.moves = new Table({
      caption: "Moves of the limit, newest first",
      rows: MOVES,
      empty: "The limit has not moved.",
      columns: [{ label: "Time" }, { label: "From", class: "num" }, { label: "To", class: "num" }, { label: "Why", class: "long" }],
    });
    this.title = el("h2");
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" },
        el("div", { class: "panel-head" }, this.title, this.cap), this.facts.node),
      el("section", { class: "panel" }, el("h2", {}, "Would another limit be better?"), this.knee.node),
      el("section", { class: "panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Over time"), this.time.node),
        el("div", { class: "charts" }, this.demand.node, this.latency.node)),
      el("section", { class: "panel" }, el("h2", {}, "Moves"), this.moves.node));
  }

  tick(tick, model) {
    const limit = tick.limit ?? {};
    const u = tick.upstreams.find((upstream) => upstream.name === model.hello.upstream) ?? {};
    this.upstream = u;
    text(this.title, `The limit of ${model.hello.upstream}`);
    show(this.cap, this.may_act());
    this.facts.set([num(u.limit), reason_words(u.limit_reason), num(u.in_flight), num(limit.demand), `${num(u.limit_min)} to ${num(u.limit_max)}`]);
    this.knee.update(limit.knee ?? [], u.limit, limit.sentence ?? "");
    this.moves.update((limit.moves ?? []).slice(-MOVES).reverse().map((m) =>
      [clock(m.t), num(m.from), num(m.to), move_words(m)]));
    this.time.update(model.history);
  }
}

export function facts(labels) {
  const values = labels.map(() => el("dd", { class: "value" }));
  const node = el("dl", { class: "facts" }, ...labels.map((label, i) => el("div", {}, el("dt", {}, label), values[i])));
  return { node, set: (list) => list.forEach((value, i) => text(values[i], value)) };
}

/** What would be in flight without refusals: in flight + waiting + refused per second × latency. */
function with_demand(w) {
  const at = (name) => {
    if (name !== "demand") return w.at(name);
    const refused = w.at("refused").map((v, i) => v * (w.at("p50_ms")[i] || 0) / 1000);
    return sum(sum(w.at("in_flight"), w.at("waiting")), refused);
  };
  return { ...w, at };
}

function demand_chart() {
  const chart = new TimeChart({
    title: "Limit, in flight and demand",
    series: [
      { key: "in_flight", label: "In flight", kind: "area", style: "flight" },
      { key: "demand", label: "Demand", kind: "line", style: "demand" },
      { key: "limit", label: "Limit", kind: "step", style: "limit" },
    ],
    format: num,
    summarise: (w) => {
      const last = w.n - 1;
      const demand = w.at("demand")[last];
      const limit = w.at("limit")[last];
      return demand > limit ? `Demand is ${times(demand / limit)} the limit.` : "Demand is below the limit.";
    },
  });
  const update = chart.update.bind(chart);
  chart.update = (w) => update(with_demand(w));
  return chart;
}

function slowdown_chart() {
  return new TimeChart({
    title: "Latency and what it is without a queue",
    series: [
      { key: "p50_ms", label: "p50", kind: "line", style: "p50" },
      { key: "baseline_ms", label: "Without a queue", kind: "line", style: "baseline" },
    ],
    format: ms,
    summarise: (w) => {
      const last = w.n - 1;
      const ratio = w.at("p50_ms")[last] / w.at("baseline_ms")[last];
      return Number.isFinite(ratio) ? `Latency is ${times(ratio)} what it is without a queue.` : "The latency without a queue is not known yet.";
    },
  });
}
