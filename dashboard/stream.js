// The one event stream of this tab. It is open while the tab is visible, is opened again with
// growing pauses when it breaks, and says how old the last message is.
//
// States: connecting, live, late (no message for three seconds), gone (the stream broke).

const LATE_MS = 3_000;
const DEAD_MS = 10_000;
const PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000];

export class Stream {
  /**
   * `on` has hello(data), tick(data), link(state, seconds without data), and refused(): the gateway
   * knows nothing of what is asked for.
   */
  constructor(on, random = Math.random) {
    this.on = on;
    this.random = random;
    this.query = "";
    this.source = null;
    this.failures = 0;
    this.last = performance.now();  // when something came
    this.opened = 0;                // when this source was opened
    this.retry = 0;
    this.full = false;
    document.addEventListener("visibilitychange", () => this.follow_visibility());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.follow_visibility());
    setInterval(() => this.watch(), 500);
  }

  /** Shows `parameters`: closes the old stream first. */
  open(parameters) {
    this.query = new URLSearchParams(parameters).toString();
    this.failures = 0;
    this.connect();
  }

  close() {
    clearTimeout(this.retry);
    this.retry = 0;
    this.source?.close();
    this.source = null;
  }

  follow_visibility() {
    if (document.visibilityState === "hidden") {
      this.close();
    } else if (this.source === null && this.query !== "") {
      this.failures = 0;
      this.last = performance.now();
      this.connect();
    }
  }

  connect() {
    this.close();
    if (document.visibilityState === "hidden") return;
    const source = new EventSource(`/live?${this.query}`);
    this.source = source;
    this.opened = performance.now();
    const take = (handle) => (event) => {
      if (source !== this.source) return;
      this.last = performance.now();
      this.failures = 0;
      this.full = false;
      handle(JSON.parse(event.data));
      this.on.link("live", 0);
    };
    source.addEventListener("hello", take((data) => this.on.hello(data)));
    source.addEventListener("tick", take((data) => this.on.tick(data)));
    source.addEventListener("error", () => {
      if (source === this.source) this.broken();
    });
  }

  broken() {
    this.close();
    const pause = PAUSES_MS[Math.min(this.failures, PAUSES_MS.length - 1)];
    this.failures += 1;
    this.retry = setTimeout(() => this.connect(), pause * (0.8 + 0.4 * this.random()));
    if (this.failures >= 2) this.ask_why();
    this.watch();
  }

  /**
   * A stream cannot tell its status, so it is asked for, again after each failure: a gateway that was
   * gone may be back and have no place for one more, or know nothing of what is asked for.
   */
  async ask_why() {
    const abort = new AbortController();
    let status = 0;
    try {
      status = (await fetch(`/live?${this.query}`, { cache: "no-store", signal: abort.signal })).status;
    } catch {  // the gateway is gone
    }
    abort.abort();
    this.full = status === 503;
    if (status === 400) this.on.refused();
  }

  watch() {
    if (document.visibilityState === "hidden") return;
    const now = performance.now();
    const age = now - this.last;
    if (this.source !== null && now - Math.max(this.last, this.opened) > DEAD_MS) return this.broken();
    if (this.source === null || this.source.readyState !== EventSource.OPEN) {
      this.on.link(this.full ? "full" : age > LATE_MS ? "gone" : "connecting", age / 1000);
    } else if (age > LATE_MS) {
      this.on.link("late", age / 1000);
    }
  }
}
