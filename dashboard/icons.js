// One shape per state, so that nobody has to tell colours apart.
import { el, svg, text } from "./dom.js";

// kind: [outline, mark inside]
const SHAPES = {
  good: ["M1 8a7 7 0 1 0 14 0a7 7 0 1 0 -14 0Z", "M4.8 8.3l2.2 2.2 4.2-4.6"],
  warn: ["M8 1l7.2 13.4H.8z", "M8 5.6v4.2m0 2.1v.2"],
  bad: ["M5 .8h6L15.2 5v6L11 15.2H5L.8 11V5z", "M5.4 5.4l5.2 5.2m0-5.2l-5.2 5.2"],
  drain: ["M4 1h8a3 3 0 0 1 3 3v8a3 3 0 0 1 -3 3h-8a3 3 0 0 1 -3 -3v-8a3 3 0 0 1 3 -3Z", "M8 3.6v6m-2.6-2.2L8 10l2.6-2.6M4.4 12.6h7.2"],
  none: ["M2 8a6 6 0 1 0 12 0a6 6 0 1 0 -12 0Z", ""],
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
  const outline = svg("path", { class: "outline" });
  const mark = svg("path", { class: "mark" });
  const node = svg("svg", { class: "icon", viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" }, outline, mark);
  let now = null;
  node.set = (wanted) => {
    if (wanted === now) return;
    now = wanted;
    node.setAttribute("data-tone", wanted);
    outline.setAttribute("d", SHAPES[wanted][0]);
    mark.setAttribute("d", SHAPES[wanted][1]);
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
