// Who is refused, and why?
import { el, show, text } from "./dom.js";
import { bytes, duration, ms, num, percent, rate, words } from "./format.js";
import { bar_cell } from "./cells.js";
import { Table } from "./table.js";

const REASONS = 16;
const PARTIES = 10;
const RECENT = 20;

export class RefusalsPage {
  constructor({ hello, actions }) {
    this.view = "refusals";
    this.classes = hello.classes;
    this.matrix = new Table({
      caption: "Refusals per second by reason and class",
      rows: REASONS,
      empty: "Nothing was refused in the last ten seconds.",
      columns: [{ label: "Reason", cell: () => reason_cell(actions) },
        ...this.classes.map((name) => ({ label: name, class: "num", cell: heat_cell })),
        { label: "All", class: "num" }, { label: "Share", cell: bar_cell, class: "bar-column" }],
      class_name: "matrix",
    });
    this.summary = el("p", { class: "summary" });
    this.shadow = new Table({
      caption: "Rules in shadow: what they would refuse",
      rows: REASONS,
      empty: "No rule in shadow would refuse anything.",
      columns: [{ label: "Reason" }, { label: "Would refuse", class: "num" }],
    });
    this.actors = parties("Actors", "No actor is refused.");
    this.peers = parties("Peers", "No peer is refused.");
    this.recent = new Table({
      caption: "Recent refusals",
      rows: RECENT,
      empty: "No refusal is on record.",
      columns: [{ label: "Request", cell: () => id_cell((id) => this.lookup.ask(id)) }, { label: "Ago", class: "num" }, { label: "Class" }, { label: "Reason" },
        { label: "In flight", class: "num" }, { label: "Limit", class: "num" }, { label: "Waited", class: "num" }],
    });
    this.lookup = new Lookup();
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" }, el("h2", {}, "By reason and class"), this.summary, this.matrix.node),
      el("div", { class: "two" },
        el("section", { class: "panel" }, el("h2", {}, "Actors, most refused first"), this.actors.node),
        el("section", { class: "panel" }, el("h2", {}, "Peers, most refused first"), this.peers.node)),
      el("div", { class: "two" },
        el("section", { class: "panel" }, el("h2", {}, "Recent refusals"), this.recent.node),
        el("div", {},
          el("section", { class: "panel" }, el("h2", {}, "Why was this request refused?"), this.lookup.node),
          el("section", { class: "panel" }, el("h2", {}, "In shadow"), this.shadow.node))));
  }

  tick(tick, model) {
    const r = tick.refusals ?? {};
    this.fill_matrix(r.matrix ?? {}, model.hello.upstream);
    this.shadow.update(Object.entries(r.shadow ?? {}).filter(([, v]) => v > 0).slice(0, REASONS).map(([name, v]) => [words(name), rate(v)]));
    this.actors.update(party_rows(r.actors));
    this.peers.update(party_rows(r.peers));
    this.recent.update((r.recent ?? []).slice(0, RECENT).map((d) =>
      [d.id, ms(d.age_ms), d.class, words(d.reason), num(d.in_flight), num(d.limit), d.waited_ms > 0 ? ms(d.waited_ms) : "–"]));
  }

  fill_matrix(matrix, upstream) {
    const rows = Object.entries(matrix).map(([reason, by_class]) => {
      // What the gateway refuses before the class is known is under "any".
      const all = Object.values(by_class).reduce((a, b) => a + b, 0);
      return { reason, values: this.classes.map((name) => by_class[name] ?? ("any" in by_class ? NaN : 0)), all };
    }).filter((row) => row.all > 0).sort((a, b) => b.all - a.all).slice(0, REASONS);
    const total = rows.reduce((a, row) => a + row.all, 0);
    this.matrix.update(rows.map((row) => [row.reason, ...row.values.map((v) => ({ value: v, share: v / total })), rate(row.all),
      { text: percent(row.all / total), share: row.all / total, full: false }]));
    const top = rows[0];
    text(this.summary, top === undefined ? `${upstream}: nothing was refused in the last ten seconds.`
      : `${upstream}: ${rate(total)} refused over the last ten seconds, ${percent(top.all / total)} of them because of ${words(top.reason)}.`);
  }
}

function parties(caption, empty) {
  return new Table({
    caption: `${caption} with most refusals`,
    rows: PARTIES,
    empty,
    columns: [{ label: "Name", class: "long" }, { label: "Refused", class: "num" }, { label: "Share", cell: bar_cell, class: "bar-column" },
      { label: "In flight", class: "num" }, { label: "Holds", class: "num wide" }, { label: "Since", class: "num wide" }],
  });
}

function party_rows(list = []) {
  const total = list.reduce((a, p) => a + (p.refused_per_s ?? 0), 0);
  return list.slice(0, PARTIES).map((p) => [p.name || p.id, rate(p.refused_per_s),
    { text: total > 0 ? percent(p.refused_per_s / total) : "–", share: p.refused_per_s / total, full: false },
    num(p.in_flight), bytes(p.bytes), p.refused > 0 ? duration(p.since_s) : "–"]);
}

function reason_cell(actions) {
  const name = el("span");
  let rule = "";
  const button = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => actions.shadow(rule) }, "To shadow");
  return {
    node: el("span", { class: "with-action" }, name, button),
    set: (value) => {
      text(name, words(value));
      rule = actions.rule_of(value);
      show(button, actions.offered() && rule !== "");
    },
  };
}

function heat_cell() {
  const node = el("span", { class: "heat" });
  let shown = -1;
  return {
    node,
    set: ({ value, share }) => {
      text(node, num(value));
      const level = value > 0 ? Math.max(0.06, Math.min(1, share)) : 0;
      if (level === shown) return;
      shown = level;
      node.style.setProperty("--heat", level.toFixed(2));
      node.dataset.none = !(value > 0);
    },
  };
}

function id_cell(ask) {
  const node = el("button", { type: "button", class: "name mono", onclick: () => ask(node.firstChild.data) });
  return { node, set: (value) => text(node, value) };
}

/** /explain?id=: the numbers at the time of the decision. */
class Lookup {
  constructor() {
    this.input = el("input", { id: "request-id", name: "id", autocomplete: "off", spellcheck: "false", placeholder: "x-request-id", required: true });
    this.answer = el("div", { class: "answer", "aria-live": "polite" });
    this.node = el("form", { class: "lookup", onsubmit: (event) => { event.preventDefault(); this.ask(this.input.value.trim()); } },
      el("label", { for: "request-id" }, "Request id"),
      el("div", { class: "row" }, this.input, el("button", { type: "submit" }, "Explain")), this.answer);
  }

  async ask(id) {
    if (!id) return;
    this.input.value = id;
    let found;
    try {
      const response = await fetch(`/explain?id=${encodeURIComponent(id)}`, { cache: "no-store" });
      const body = await response.text();
      found = response.ok ? fields(body) : [["answer", body.trim() || `status ${response.status}`]];
    } catch {
      found = [["answer", "the gateway does not answer"]];
    }
    this.answer.replaceChildren(el("dl", { class: "fields" },
      ...found.map(([name, value]) => el("div", {}, el("dt", {}, words(name)), el("dd", {}, value)))));
  }
}

function fields(body) {
  try {
    const flat = [];
    const walk = (value, name) => {
      if (value !== null && typeof value === "object") for (const [k, v] of Object.entries(value)) walk(v, name ? `${name} ${k}` : k);
      else if (flat.length < 60) flat.push([name, String(value)]);
    };
    walk(JSON.parse(body), "");
    return flat;
  } catch {
    return [["answer", body.slice(0, 4000)]];
  }
}
