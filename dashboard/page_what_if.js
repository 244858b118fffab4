// What if a setting were different? The answer is computed by `weir replay` on the operator's
// machine, never by a gateway in trouble; this page writes the command.
import { el, text } from "./dom.js";
import { CopyBox } from "./copy_box.js";
import { diff, full_name, settings, shell_word } from "./toml.js";

const CHANGES = 6;

export const SUGGESTED = [
  ["admission.limit.max_limit", "highest limit"],
  ["admission.limit.min_limit", "lowest limit"],
  ["admission.limit.policy", "how the limit is found"],
  ["admission.max_concurrent", "requests at once, all upstreams"],
  ["admission.waiting_max", "requests that may wait"],
  ["actors.inflight_max", "requests at once of one actor"],
  ["priority.low_limit", "requests of class low at once"],
];

// What `weir replay` can change: what decides about admission.
const REPLAYED = /^(admission|priority|memory|upstream)\.|^actors\.(inflight_max|bytes_max|actor_table_size)$/;

/** The limit must begin between its bounds: a bound that passes it takes it along. */
function with_first_limit(wanted, known) {
  const key = (name) => `admission.limit.${name}`;
  const changed = new Map(wanted);
  const first = Number(changed.get(key("initial_limit")) ?? known.get(key("initial_limit")));
  const [low, high] = ["min_limit", "max_limit"].map((name) => Number(changed.get(key(name))));
  const moved = first > high ? high : first < low ? low : first;
  return moved === first || !(moved >= 1) ? wanted : [...wanted.filter(([name]) => name !== key("initial_limit")), [key("initial_limit"), String(moved)]];
}

export class WhatIfPage {
  constructor() {
    this.view = "config";
    this.source = "";
    this.list = el("datalist", { id: "keys" }, ...SUGGESTED.map(([key, label]) => el("option", { value: key, label })));
    this.changes = Array.from({ length: CHANGES }, (_, i) => this.make_change(i));
    this.workers = el("input", { id: "workers", type: "number", min: "1", class: "mono", placeholder: "as recorded" });
    this.workers.addEventListener("input", () => this.write());
    this.add = el("button", { type: "button", class: "quiet", onclick: () => this.add_change() }, "Another setting");
    this.command = new CopyBox("Command");
    this.lines = new CopyBox("Change of weir.toml");
    this.node = el("div", { class: "page" },
      el("section", { class: "panel" }, el("h2", {}, "What if a setting were different?"),
        el("p", { class: "prose" }, "The gateway keeps its last decisions. Replayed with another setting, they say what would have been refused and how long answers would have taken. The replay runs on your machine, not in this gateway."),
        el("ol", { class: "steps" },
          el("li", {}, el("strong", {}, "First the past: "), "the recording is replayed with the settings it was made with. If that misses the refusals or the p99 that were measured by more than 20 %, you get the comparison and no forecast."),
          el("li", {}, el("strong", {}, "Then the change: "), "the same arrivals with your setting, beside the first result."),
          el("li", {}, el("strong", {}, "What it cannot know: "), "clients whose retries were recorded do not react to the new setting.")),
        el("form", { class: "what-if", onsubmit: (event) => event.preventDefault() },
          el("h3", {}, "Settings"), ...this.changes.map((c) => c.node), this.list, this.add,
          el("h3", {}, "Service"),
          el("div", { class: "change" }, el("label", { for: "workers" }, "Requests that it serves at once, all replicas together", this.workers)))),
      el("section", { class: "panel" }, el("h2", {}, "Run this"), this.command.node, this.lines.node));
    this.write();
  }

  make_change(i) {
    const key = el("input", { id: `key-${i}`, list: "keys", autocomplete: "off", spellcheck: "false", placeholder: "section.key", class: "mono" });
    const value = el("input", { id: `value-${i}`, autocomplete: "off", spellcheck: "false", placeholder: "value", class: "mono" });
    const now = el("span", { class: "note", id: `now-${i}` });
    value.setAttribute("aria-describedby", now.id);
    for (const input of [key, value]) input.addEventListener("input", () => this.write());
    return { key, value, now, node: el("div", { class: "change", hidden: i > 0 }, el("label", { for: key.id }, "Setting", key), el("label", { for: value.id }, "New value", value), now) };
  }

  add_change() {
    const next = this.changes.find((c) => c.node.hidden);
    if (next === undefined) return;
    next.node.hidden = false;
    this.add.hidden = this.changes.every((c) => !c.node.hidden);
    next.key.focus();
  }

  tick(tick) {
    if (tick.config?.text === undefined) return;
    this.source = tick.config.text;
    this.write();
  }

  note(name, known) {
    if (name === "" || this.source === "") return "";
    const now = known.has(name) ? `now ${known.get(name)}` : "not in the configuration in force";
    return REPLAYED.test(name) ? now : `${now}; no replay can tell what it would do`;
  }

  write() {
    const known = new Map(settings(this.source).map((s) => [full_name(s), s.value]));
    let wanted = [];
    for (const { key, value, now } of this.changes) {
      const name = key.value.trim();
      text(now, this.note(name, known));
      if (name !== "" && value.value.trim() !== "") wanted.push([name, value.value.trim()]);
    }
    wanted = with_first_limit(wanted, known);
    const sets = wanted.filter(([name]) => REPLAYED.test(name)).map(([name, value]) => ` \\\n  --set ${shell_word(`${name}=${value}`)}`).join("");
    const workers = Number(this.workers.value) >= 1 ? ` \\\n  --workers ${Math.floor(Number(this.workers.value))}` : "";
    this.command.set(`weir replay ${location.origin}${sets}${workers}`);
    this.lines.set(wanted.length === 0 ? "Choose a setting and a value." : diff(this.source, wanted));
  }
}
