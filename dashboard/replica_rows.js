// The rows of Replicas as they change: the gateway sends a row only when it is new or differs.

const SPARK = 20;
const ROWS_MAX = 4000;

export class ReplicaRows {
  constructor() {
    this.rows = new Map();
  }

  clear() {
    this.rows.clear();
  }

  get(id) {
    return this.rows.get(id);
  }

  /** `now`: the second of this message; that time passes is not sent. */
  take({ columns, rows = [], order }, now) {
    if (this.rows.size > ROWS_MAX) this.keep(new Set(order));
    const begun = new Set();  // their lines hold this second already
    for (const values of rows) {
      const row = {};
      columns.forEach((name, i) => { row[name] = values[i]; });
      row.since = now - row.since_s;
      if (Array.isArray(row.spark)) {
        row.spark = row.spark.map(known);
        begun.add(row.id);
      } else {
        row.spark = this.rows.get(row.id)?.spark ?? [];
      }
      this.rows.set(row.id, row);
    }
    for (const id of order) if (!begun.has(id)) this.append(this.rows.get(id));
  }

  /** A row that is not sent is as before; one that is quiet has had no answer, so its p50 is old. */
  append(row) {
    if (row === undefined) return;
    row.spark.push(row.quiet ? NaN : known(row.p50_ms));
    if (row.spark.length > SPARK) row.spark.shift();
  }

  keep(ids) {
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
  }
}

/** 0 ms is no latency: there was no answer. */
function known(ms) {
  return ms > 0 ? ms : NaN;
}
