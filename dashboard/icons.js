// One shape per state, so that nobody has to tell colours apart.
import { el, svg, text } from "./dom.js";

const SHAPES = {
  good: [["circle", { cx: 8, cy: 8, r: 7 }], ["path", { class: "mark", d: "M4.8 8.3l2.2 2.2 4.2-4.6" }]],
  warn: [["path", { d: "M8 1l7.2 13.4H.8z" }], ["path", { class: "mark", d: "M8 5.6v4.2m0 2.1v.2" }]],
  bad: [["path", { d: "M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z" }],
    ["path", { class: "mark", d: "M5.4 5.4l5.2 5.2m0-5.2l-5.2 5.2" }]],
  drain: [["rect", { x: 1, y: 1, width: 14, height: 14, rx: 3 }],
    ["path", { class: "mark", d: "M8 3.6v6m-2.6-2.2L8 10l2.6-2.6M4.4 12.6h7.2" }]],
  none: [["circle", { class: "hollow", cx: 8, cy: 8, r: 6 }]],
};

const TONES = {
  HEALTHY: "good", PRESSURED: "warn", OVERLOADED: "bad", DRAINING: "drain",
  available: "good", open: "good", returning: "warn", slow: "warn", suspect: "warn",
  hung: "bad", ejected: "bad", draining: "drain",
  normal: "good", elevated: "warn", high: "warn", critical: "bad",
};

export function tone(state) {
  return TONES[state] ?? "none";
}

/** An icon whose shape can change: `icon.set("warn")`. */
export function icon(kind = "none", size = 16) {
  const node = svg("svg", { class: "icon", viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" });
  let now = null;
  node.set = (wanted) => {
    if (wanted === now) return;
    now = wanted;
    node.setAttribute("data-tone", wanted);
    node.replaceChildren(...SHAPES[wanted].map(([tag, attributes]) => svg(tag, attributes)));
  };
  node.set(kind);
  return node;
}

/** Shape and word: `badge.set("OVERLOADED", "Overloaded")`. */
export function badge(size = 16) {
  const shape = icon("none", size);
  const word = el("span");
  const node = el("span", { class: "badge" }, shape, word);
  node.set = (state, label) => {
    const kind = tone(state);
    shape.set(kind);
    if (node.dataset.tone !== kind) node.dataset.tone = kind;
    text(word, label);
  };
  return node;
}
