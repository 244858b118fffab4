// Where is the memory?
import { attr, el, show, svg, text } from "./dom.js";
import { bytes, count, percent } from "./format.js";
import { bar_cell } from "./cells.js";
import { facts } from "./page_limit.js";
import { Figure } from "./figure.js";
import { Table } from "./table.js";

const ADDENDS = 64;
const POOLS = 48;
const PARTS = 8;  // of the stack; the rest is one part
const HINTS = 8;

export class MemoryPage {
  constructor() {
    this.view = "memory";
    this.facts = facts(["Used", "Pressure", "Ceiling of the gateway", "The gateway uses", "Limit of the group", "Others in the group"]);
    this.stack = new Stack();
    this.pools = new Table({
      caption: "Pools",
      rows: POOLS,
      empty: "No pool",
      columns: [{ label: "Pool", class: "long" }, { label: "Used", cell: bar_cell, class: "bar-column" }, { label: "Peak", class: "num" }, { label: "Capacity", class: "num" },
        { label: "Exhausted", class: "num", hint: "times that no place was free" }],
    });
    this.hints = Array.from({ length: HINTS }, () => el("li", { hidden: true }));
    this.no_hints = el("p", { class: "empty" }, "None.");
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" }, el("h2", {}, "Now"), this.facts.node),
      el("section", { class: "panel" }, el("h2", {}, "Ceiling"), this.stack.node),
      el("section", { class: "panel" }, el("h2", {}, "Pools"), this.pools.node),
      el("section", { class: "panel" }, el("h2", {}, "What would save memory"),
        el("ul", { class: "hints" }, ...this.hints), this.no_hints));
  }

  tick(tick) {
    const m = tick.memory ?? {};
    const group = m.cgroup ?? {};
    if (m.addends) this.stack.update(m.addends);
    if (m.hints) this.fill_hints(m.hints);
    this.facts.set([m.readable === false ? "cannot be read" : percent(m.usage), m.pressure ?? "–", bytes(m.ceiling), bytes(group.mine),
      group.limit > 0 ? bytes(group.limit) : "none", bytes(Math.max(0, (group.used ?? NaN) - (group.mine ?? NaN)))]);
    if (m.pools) this.fill_pools(m.pools);
  }

  fill_pools(pools) {
    const sorted = [...pools].sort((a, b) => (b.exhausted > 0) - (a.exhausted > 0) || b.peak / b.capacity - a.peak / a.capacity).slice(0, POOLS);
    this.pools.update(sorted.map((p) => [p.name, { text: `${percent(p.used / p.capacity)}`, share: p.used / p.capacity }, count(p.peak), count(p.capacity),
      count(p.exhausted)]), sorted.map((p) => (p.exhausted > 0 ? "bad" : "")));
  }

  fill_hints(hints) {
    show(this.no_hints, hints.length === 0);
    this.hints.forEach((node, i) => {
      show(node, hints[i] !== undefined);
      text(node, hints[i]);
    });
  }
}

/** The ceiling as one bar of its addends, and all of them as a table. */
class Stack {
  constructor() {
    this.figure = new Figure({
      title: "The ceiling and what it consists of",
      table: [{ label: "Addend", class: "long" }, { label: "Bytes", class: "num" }, { label: "Share", class: "num" }, { label: "Decided by", class: "long" }],
      rows: ADDENDS,
      class_name: "stack",
    });
    this.node = this.figure.node;
    this.parts = Array.from({ length: PARTS + 1 }, (_, i) => {
      const part = { box: svg("rect", { class: `part part-${i}`, y: 0, height: 34 }), name: el("span"), size: el("span", { class: "legend-value" }) };
      part.item = el("li", {}, el("span", { class: `swatch block part-${i}`, "aria-hidden": "true" }), part.name, part.size);
      return part;
    });
    this.svg = svg("svg", { role: "img", "aria-labelledby": this.figure.summary_id, viewBox: "0 0 1000 34", height: 34, preserveAspectRatio: "none" },
      ...this.parts.map((p) => p.box));
    this.figure.canvas.append(this.svg);
    this.figure.legend.classList.add("columns");
    this.figure.legend.append(...this.parts.map((p) => p.item));
  }

  update(addends) {
    const sorted = [...addends].sort((a, b) => b.bytes - a.bytes);
    const all = sorted.reduce((a, x) => a + x.bytes, 0);
    const rest = sorted.slice(PARTS);
    const parts = [...sorted.slice(0, PARTS), { name: `${rest.length} others`, bytes: rest.reduce((a, x) => a + x.bytes, 0) }];
    let at = 0;
    this.parts.forEach(({ box, item, name, size }, i) => {
      const part = parts[i];
      show(item, part !== undefined);
      const width = part === undefined ? 0 : (part.bytes / all) * 1000;
      attr(box, "x", at.toFixed(1));
      attr(box, "width", Math.max(0, width - 1.5).toFixed(1));
      at += width;
      text(name, part?.name);
      text(size, part === undefined ? "" : bytes(part.bytes));
    });
    const top = sorted[0];
    this.figure.update(top === undefined ? "Nothing is known about the ceiling."
      : `${bytes(all)} at most; the largest part, ${top.name}, is ${percent(top.bytes / all)} of it.`,
    () => sorted.slice(0, ADDENDS).map((x) => [x.name, bytes(x.bytes), percent(x.bytes / all), x.note]));
  }
}
