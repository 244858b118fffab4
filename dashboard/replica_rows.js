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
    for (const values of rows) {
      const row = {};
      columns.forEach((name, i) => { row[name] = values[i]; });
      row.since = now - row.since_s;
      const before = this.rows.get(row.id);
      if (!Array.isArray(row.spark)) row.spark = before?.spark ?? [];
      else row.spark = row.spark.map((v) => v ?? NaN);
      this.rows.set(row.id, row);
    }
    for (const id of order) this.append(this.rows.get(id));
  }

  append(row) {
    if (row === undefined) return;
    row.spark.push(row.p50_ms ?? NaN);
    if (row.spark.length > SPARK) row.spark.shift();
  }

  keep(ids) {
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
  }
}
