// What a cell of a table can hold besides text: a bar, a line, a state.
import { el, svg, text } from "./dom.js";
import { badge } from "./icons.js";
import { line_path, area_path, largest } from "./scale.js";

/** {state, label, note}: shape and word, and why. */
export function state_cell() {
  const mark = badge(14);
  const note = el("span", { class: "note" });
  return {
    node: el("span", { class: "state" }, mark, note),
    set: ({ state, label, note: why }) => {
      mark.set(state, label);
      text(note, why);
    },
  };
}

/** {text, share, over}: a number above a bar that is `share` full. */
export function bar_cell() {
  const number = el("span", { class: "bar-text" });
  const fill = el("span", { class: "bar-fill" });
  let shown = -1;
  const node = el("span", { class: "bar" }, number, el("span", { class: "bar-track", "aria-hidden": "true" }, fill));
  return {
    node,
    set: ({ text: words, share, full }) => {
      text(number, words);
      const wanted = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0));
      if (Math.abs(wanted - shown) < 0.002) return;
      shown = wanted;
      fill.style.transform = `scaleX(${wanted.toFixed(3)})`;
      fill.dataset.full = full ?? wanted >= 0.95;
    },
  };
}

/** A line of the last seconds: {line: [numbers], area: [numbers]}; `area` is drawn below it. */
export function spark_cell(width = 96, height = 24) {
  const area = svg("path", { class: "spark-area" });
  const line = svg("path", { class: "spark-line" });
  const node = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, area, line);
  return {
    node,
    set: ({ line: values = [], area: below = [] }) => {
      const top = Math.max(largest(values, below), 1e-9);
      const last = Math.max(values.length, below.length) - 1;
      const x = (i) => (last > 0 ? (i / last) * (width - 2) + 1 : 1);
      const y = (v) => height - 1.5 - (v / top) * (height - 3);
      line.setAttribute("d", line_path(values, x, y));
      area.setAttribute("d", area_path(new Array(below.length).fill(0), below, x, y));
    },
  };
}
