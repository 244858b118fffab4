// Axes: round maxima, ticks and path data. Pure.

/** The next number whose quarters are round; at least 1. */
export function round_up(v) {
  if (!(v > 1)) return 1;
  const power = 10 ** Math.floor(Math.log10(v));
  for (const step of [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10]) {
    if (v <= step * power * 1.0001) return step * power;
  }
  return 10 * power;
}

export function largest(...series) {
  let found = 0;
  for (const values of series) for (const v of values) if (v > found) found = v;
  return found;
}

const r = (v) => Math.round(v * 10) / 10;

/** A line through (x(i), y(values[i])), broken where a value is not known. */
export function line_path(values, x, y) {
  let path = "";
  let drawing = false;
  for (let i = 0; i < values.length; ++i) {
    const v = values[i];
    if (v !== v) {
      drawing = false;
      continue;
    }
    path += `${drawing ? "L" : "M"}${r(x(i))} ${r(y(v))}`;
    drawing = true;
  }
  return path;
}

/** The same as steps: a value holds until the next one. */
export function step_path(values, x, y) {
  let path = "";
  let before = NaN;
  for (let i = 0; i < values.length; ++i) {
    const v = values[i];
    if (v === v) {
      if (before !== before) path += `M${r(x(i))} ${r(y(v))}`;
      else if (v !== before) path += `H${r(x(i))}V${r(y(v))}`;
      if (i + 1 === values.length) path += `H${r(x(i))}`;
    } else if (before === before) {
      path += `H${r(x(i - 1))}`;
    }
    before = v;
  }
  return path;
}

/** The area between two series; unknown seconds are left out. */
export function area_path(low, high, x, y) {
  let path = "";
  let first = -1;
  for (let i = 0; i <= high.length; ++i) {
    const known = i < high.length && high[i] === high[i];
    if (known && first < 0) first = i;
    if (known || first < 0) continue;
    for (let j = first; j < i; ++j) path += `${j === first ? "M" : "L"}${r(x(j))} ${r(y(high[j]))}`;
    for (let j = i - 1; j >= first; --j) path += `L${r(x(j))} ${r(y(low[j] === low[j] ? low[j] : 0))}`;
    path += "Z";
    first = -1;
  }
  return path;
}

export function sum(a, b) {
  const out = new Array(a.length);
  for (let i = 0; i < a.length; ++i) out[i] = a[i] + b[i];
  return out;
}
