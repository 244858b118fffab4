// Is anything overloaded, and whose fault is it?
import { attr, el, text } from "./dom.js";
import { clock, ms, num, rate, sentence, words } from "./format.js";
import { icon } from "./icons.js";
import { state_word, cause_facts } from "./verdict_words.js";
import { bar_cell, spark_cell, state_cell } from "./cells.js";
import { Table } from "./table.js";
import { TimeChart } from "./time_chart.js";
import { TimeRow } from "./time_row.js";
import { VerdictStrip } from "./verdict_strip.js";

const EVENTS = 20;

export const request_chart = () => new TimeChart({
  title: "Requests per second",
  series: [
    { key: "admitted", label: "Admitted", kind: "area", style: "admitted" },
    { key: "refused", label: "Refused", kind: "stack", style: "refused" },
    { key: "failed", label: "Failed", kind: "line", style: "failed" },
  ],
  format: num,
  summarise: (w) => {
    const last = w.n - 1;
    const refused = w.at("refused")[last];
    return `${rate(w.at("offered")[last])} asked, ${rate(w.at("admitted")[last])} admitted, ${refused > 0 ? `${rate(refused)} refused` : "nothing refused"}.`;
  },
});

export const latency_chart = () => new TimeChart({
  title: "Latency",
  series: [
    { key: "p99_ms", label: "p99", kind: "line", style: "p99" },
    { key: "p50_ms", label: "p50", kind: "line", style: "p50" },
    { key: "baseline_ms", label: "Without a queue", kind: "line", style: "baseline" },
  ],
  format: ms,
  summarise: (w) => {
    const last = w.n - 1;
    return `Half of the answers take up to ${ms(w.at("p50_ms")[last])}, 99 % up to ${ms(w.at("p99_ms")[last])}; without a queue ${ms(w.at("baseline_ms")[last])}.`;
  },
});

export const flight_chart = () => new TimeChart({
  title: "In flight and limit",
  series: [
    { key: "in_flight", label: "In flight", kind: "area", style: "flight" },
    { key: "waiting", label: "Waiting", kind: "stack", style: "waiting" },
    { key: "limit", label: "Limit", kind: "step", style: "limit" },
  ],
  format: num,
  summarise: (w) => {
    const last = w.n - 1;
    return `${num(w.at("in_flight")[last])} in flight of a limit of ${num(w.at("limit")[last])}, ${num(w.at("waiting")[last])} waiting.`;
  },
});

export class NowPage {
  constructor({ hello, choose }) {
    this.view = "now";
    this.names = hello.upstreams;
    this.upstreams = new Table({
      caption: "Upstreams",
      rows: hello.upstreams.length,
      empty: "No upstream",
      columns: [
        { label: "Upstream", cell: () => name_cell(choose) },
        { label: "State", cell: state_cell },
        { label: "Asked", class: "num" },
        { label: "Admitted", class: "num" },
        { label: "Refused", class: "num" },
        { label: "In flight | limit", cell: bar_cell, class: "bar-column" },
        { label: "Waiting", class: "num wide" },
        { label: "p50", class: "num wide" },
        { label: "p99", class: "num" },
        { label: "Replicas", class: "num wide", hint: "open of all" },
        { label: "Last minute", class: "wide", cell: () => spark_cell(), hint: "asked, and below it refused" },
      ],
    });
    this.chart_of = el("h2", { class: "chart-of" });
    this.charts = [request_chart(), latency_chart(), flight_chart()];
    this.time = new TimeRow(this.charts);
    this.strip = new VerdictStrip();
    this.time.others.push(this.strip);
    this.events = new EventList();
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" }, el("h2", {}, "Upstreams"), this.upstreams.node),
      el("section", { class: "panel" }, el("div", { class: "panel-head" }, this.chart_of, this.time.node),
        this.strip.node, el("div", { class: "charts" }, ...this.charts.map((chart) => chart.node))),
      el("section", { class: "panel" }, el("h2", {}, "Events"), this.events.node));
  }

  tick(tick, model) {
    text(this.chart_of, model.hello.upstream);
    const tones = [];
    this.upstreams.update(tick.upstreams.map((u) => {
      tones.push(u.name === model.hello.upstream ? "shown" : "");
      const spark = model.spark.get(u.name);
      return [u.name, { state: u.state, label: state_word(u.state), note: u.cause === "fine" ? "" : cause_facts(u.cause).label },
        rate(u.offered), rate(u.admitted), rate(u.refused),
        { text: `${num(u.in_flight)} | ${num(u.limit)}`, share: u.in_flight / u.limit, full: u.in_flight >= 0.9 * u.limit },
        num(u.waiting), ms(u.p50_ms), ms(u.p99_ms), `${num(u.replicas_open)} of ${num(u.replicas)}`,
        { line: spark?.offered, area: spark?.refused }];
    }), tones);
    this.time.update(model.history);
    this.events.update(model.events);
  }
}

function name_cell(choose) {
  const node = el("button", { type: "button", class: "name", onclick: () => choose(node.firstChild.data) });
  return {
    node,
    set: (value) => {
      text(node, value);
      attr(node, "title", `Show the charts of ${value}`);
    },
  };
}

const KINDS = { limit: "none", endpoint: "warn", reload: "good", override: "warn", verdict: "bad", memory: "warn", drain: "drain" };

/** The last events, newest first. */
export class EventList {
  constructor() {
    this.rows = Array.from({ length: EVENTS }, () => {
      const row = { time: el("time"), mark: icon("none", 14), kind: el("span", { class: "kind" }), words: el("span", { class: "event-text" }) };
      row.node = el("li", { hidden: true }, row.time, row.mark, row.kind, row.words);
      return row;
    });
    this.none = el("p", { class: "empty" }, "Nothing has happened since the gateway started.");
    this.node = el("div", {}, el("ol", { class: "events" }, ...this.rows.map((row) => row.node)), this.none);
  }

  update(events) {
    this.none.hidden = events.length > 0;
    this.rows.forEach((row, i) => {
      const event = events[events.length - 1 - i];
      row.node.hidden = event === undefined;
      if (event === undefined) return;
      text(row.time, clock(event.t));
      row.mark.set(/\b(fine|available)$/.test(event.text) ? "good" : KINDS[event.kind] ?? "none");
      text(row.kind, words(event.kind));
      text(row.words, event.upstream ? `${event.upstream}: ${event.text}` : sentence(event.text));
    });
  }
}
