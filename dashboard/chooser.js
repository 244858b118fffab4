// Which upstream the charts show: the operator's choice, or the one with the worst verdict.

const PATIENCE = 5;  // ticks for which another upstream must be the worst before the charts move

export class Chooser {
  constructor() {
    this.chosen = "";  // empty: the worst
    this.shown = "";
    this.elsewhere = 0;
  }

  /** True if the stream should be opened again, for another upstream. */
  on_tick(tick) {
    const worst = tick.verdict?.upstream;
    const trouble = tick.verdict && tick.verdict.cause !== "fine";
    if (this.chosen !== "" || !trouble || !worst || worst === this.shown) {
      this.elsewhere = 0;
      return false;
    }
    this.elsewhere += 1;
    if (this.elsewhere < PATIENCE) return false;
    this.elsewhere = 0;
    return true;
  }
}
