// The last quarter of an hour of one upstream, second by second. Pure.

export const SECONDS = 900;

export class History {
  constructor() {
    this.columns = [];
    this.rows = [];  // oldest first; null: nothing is known about that second
    this.end = 0;    // Unix second of the last row
  }

  reset({ columns = [], rows = [], from = 0, step = 1 } = {}) {
    this.columns = columns;
    this.rows = rows.slice(-SECONDS);
    this.end = rows.length ? from + (rows.length - 1) * step : 0;
  }

  /** Appends the row of second `t`; seconds that were missed become gaps. */
  push(t, row) {
    if (!Array.isArray(row) || row.length === 0) return;
    if (this.rows.length === 0 || t > this.end + SECONDS) this.rows = [];
    else for (let gap = this.end + 1; gap < t; ++gap) this.rows.push(null);
    if (this.rows.length && t <= this.end) this.rows[this.rows.length - 1] = row;
    else this.rows.push(row);
    this.end = Math.max(t, this.end);
    while (this.rows.length > SECONDS) this.rows.shift();
  }

  get(row, name) {
    const value = row === null || row === undefined ? undefined : row[this.columns.indexOf(name)];
    return value === undefined || value === null ? NaN : value;
  }

  /** The last `n` seconds: `at(name)` is an array of n numbers, NaN where nothing is known. */
  window(n) {
    const missing = n - this.rows.length;
    const columns = new Map();
    const at = (name) => {
      let values = columns.get(name);
      if (values === undefined) {
        const index = this.columns.indexOf(name);
        values = new Array(n);
        for (let i = 0; i < n; ++i) {
          const row = i < missing ? null : this.rows[i - missing];
          const value = row === null || index < 0 ? null : row[index];
          values[i] = value === null || value === undefined ? NaN : value;
        }
        columns.set(name, values);
      }
      return values;
    };
    return { n, end: this.end, at, missing: Math.max(0, missing) };
  }
}

/** Runs of equal values: [[first, last, value]]; not known is left out. */
export function runs(values) {
  const found = [];
  for (let i = 0; i < values.length; ++i) {
    const value = values[i];
    if (typeof value !== "string") continue;
    const last = found[found.length - 1];
    if (last && last[1] === i - 1 && last[2] === value) last[1] = i;
    else found.push([i, i, value]);
  }
  return found;
}
