// What an operator may do from here. Each action is temporary, is tried without effect first, and
// needs the token: it is sent as a header, so no other page can act in the operator's name.

// Reason of a refusal: the rule that may be put into shadow.
const RULES = {
  deadline: "deadline", memory: "memory", peer_limit: "peer", actor_inflight: "actor", actor_bytes: "actor",
  bytes: "bytes", class_limit: "class_cap", overload: "limit",
};

const DURATIONS = [[300, "5 minutes"], [900, "15 minutes"], [1800, "30 minutes"], [3600, "1 hour"]];

const duration_field = { name: "for_s", label: "For", choices: DURATIONS, value: 900 };

export class Actions {
  /** `upstream()` is the one that is shown; `ask` opens the dialog. */
  constructor({ upstream, ask, token = "" }) {
    this.upstream = upstream;
    this.ask = ask;
    this.token = token;
    this.mode = "off";
    this.overrides = [];
  }

  offered() {
    return this.mode === "token";
  }

  rule_of(reason) {
    return RULES[reason] ?? "";
  }

  drained(endpoint) {
    const what = `${this.upstream()} ${endpoint}`;
    return this.overrides.some((o) => o.kind === "drain" && o.what === what);
  }

  drain(endpoint, drained) {
    const body = { upstream: this.upstream(), endpoint };
    if (drained) return this.ask({ title: `Undrain ${endpoint}`, path: "/actions/undrain", body, verb: "Undrain", fields: [] });
    return this.ask({
      title: `Drain ${endpoint}`, path: "/actions/drain", body, verb: "Drain", can_force: true,
      words: "It gets no new requests; those under way finish.", fields: [duration_field],
    });
  }

  shadow(rule) {
    return this.ask({
      title: `Put the rule ${rule} into shadow`, path: "/actions/shadow", body: { rule }, verb: "To shadow",
      words: "It refuses nothing for a while, and counts what it would refuse.", fields: [duration_field],
    });
  }

  cap(upstream) {
    return this.ask({
      title: `Cap the limit of ${upstream.name}`, path: "/actions/cap", body: { upstream: upstream.name }, verb: "Cap",
      words: "The limit stays at or below this number.",
      fields: [{ name: "limit", label: "At most", number: true, min: upstream.limit_min, max: upstream.limit_max, value: upstream.limit }, duration_field],
    });
  }

  remove(override) {
    return this.ask({ title: `End ${override.kind}: ${override.what}`, path: "/actions/remove", body: { id: override.id }, verb: "End now", fields: [] });
  }

  /** {ok, status, answer}: what the gateway said. One action a second is carried out: the next one
   *  waits for its turn once. */
  async send(path, body) {
    const sent = await this.post(path, body);
    if (sent.status !== 429) return sent;
    await new Promise((done) => setTimeout(done, 1000 * Math.min(5, sent.retry_after_s)));
    return this.post(path, body);
  }

  async post(path, body) {
    try {
      const response = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${this.token}` },
        body: JSON.stringify(body),
        cache: "no-store",
      });
      const words = await response.text();
      let answer = words;
      try {
        answer = JSON.parse(words);
      } catch {  // plain text is shown as it is
      }
      return { ok: response.ok, status: response.status, answer, retry_after_s: Number(response.headers.get("retry-after") ?? 1) };
    } catch {
      return { ok: false, status: 0, answer: "the gateway does not answer" };
    }
  }
}
