// What a gateway would say in a given state, second by second: equal seconds give equal numbers.

const COLUMNS = ["offered", "admitted", "refused", "failed", "in_flight", "waiting", "limit", "p50_ms", "p99_ms", "baseline_ms", "cause"];
export const CLASSES = ["critical", "high", "normal", "low"];
export const SCRIPT = "<script>alert(1)</script>";
const IMAGE = '"><img src=x onerror=alert(1)>';

const CAUSES = {
  fine: ["nothing is refused, and the service is as fast as usual", "nothing to do"],
  demand: ["more is asked than the service can do", "add capacity; meanwhile the least important requests are refused first"],
  sick_replica: ["one replica is out or much slower than the others", "look at the worst replica in /endpoints; drain or restart it"],
  memory: ["memory is short, so requests are refused", "find what uses the memory, or give the machine or container more"],
};

// state: [cause, state, seconds since the onset]
const STATES = {
  idle: ["fine", "HEALTHY", 860], overloaded: ["demand", "OVERLOADED", 41], sick: ["sick_replica", "PRESSURED", 73],
  memory: ["memory", "OVERLOADED", 28], draining: ["fine", "HEALTHY", 600], many: ["sick_replica", "PRESSURED", 120],
  hostile: ["demand", "OVERLOADED", 41],
};

function noise(t, salt) {
  let h = (Math.imul(t | 0, 2654435761) ^ Math.imul(salt, 40503)) >>> 0;
  h ^= h >>> 15;
  h = Math.imul(h, 2246822519) >>> 0;
  return ((h ^ (h >>> 13)) >>> 0) / 4294967296;
}

const three = (v) => (v === 0 ? 0 : Number(v.toPrecision(3)));

export class Traffic {
  /** `base`: the second at which the scripted trouble is as old as STATES says. */
  constructor(state, base) {
    this.state = state;
    this.base = base;
    [this.cause, this.word, this.since] = STATES[state];
    this.upstreams = state === "hostile" ? [SCRIPT, IMAGE] : state === "many" ? ["search"] : ["checkout", "reports", "search"];
    this.replicas = state === "many" ? 1000 : 3;
  }

  cause_at(t) {
    const age = t - this.base + this.since;
    if (age >= 0) return this.cause;
    if (this.state === "idle") return "fine";
    return age > -520 && age < -470 ? "sick_replica" : "fine";
  }

  row(upstream, t) {
    if (upstream > 0) return this.calm_row(upstream, t);
    const cause = this.cause_at(t);
    const wave = 1 + 0.06 * Math.sin(t / 47) + 0.05 * (noise(t, 1) - 0.5);
    const age = Math.max(0, t - this.base + this.since);
    const ramp = Math.min(1, age / 6);
    const usual = 580 * wave;
    const offered = cause === "demand" ? usual * (1 + 1.25 * ramp) : usual;
    const capacity = cause === "memory" ? 430 : 615;
    const admitted = Math.min(offered, capacity * (0.98 + 0.04 * noise(t, 2)));
    const refused = Math.max(0, offered - admitted);
    const limit = cause === "demand" ? 44 + Math.round(4 * noise(Math.floor(t / 4), 3)) : 52 + Math.round(3 * noise(Math.floor(t / 9), 3));
    const p50 = (cause === "demand" ? 23 : 21) + 2 * noise(t, 4);
    const p99 = (cause === "sick_replica" ? 190 : cause === "demand" ? 84 : 44) + 14 * noise(t, 5);
    const busy = Math.min(limit, admitted * p50 / 1000 * (cause === "demand" ? 3 : 1));
    return [offered, admitted, refused, 0, Math.round(busy), cause === "demand" ? Math.round(8 + 6 * noise(t, 6)) : 0, limit, p50, p99, 20.6, cause]
      .map((v) => (typeof v === "number" ? three(v) : v));
  }

  calm_row(upstream, t) {
    const offered = 90 * upstream * (1 + 0.1 * Math.sin(t / 31) + 0.1 * noise(t, 10 + upstream));
    return [offered, offered, 0, 0, Math.round(offered / 20), 0, 64, 48 + 6 * noise(t, 20), 120 + 20 * noise(t, 21), 46, "fine"]
      .map((v) => (typeof v === "number" ? three(v) : v));
  }

  hello(view, upstream, now, actions) {
    const index = Math.max(0, this.upstreams.indexOf(upstream));
    const spark = {};
    this.upstreams.forEach((name, u) => {
      const rows = Array.from({ length: 60 }, (_, i) => this.row(u, now - 59 + i));
      spark[name] = { offered: rows.map((r) => r[0]), refused: rows.map((r) => r[2]) };
    });
    return {
      version: "0.1.0", name: this.state === "hostile" ? SCRIPT : "gw1", started: this.base - 86_400, interval_ms: 1000, now, view,
      upstream: this.upstreams[index], upstreams: this.upstreams, classes: CLASSES, actions,
      history: { upstream: this.upstreams[index], from: now - 899, step: 1, columns: COLUMNS, rows: Array.from({ length: 900 }, (_, i) => this.row(index, now - 899 + i)) },
      spark, events: this.events(),
    };
  }

  events() {
    const name = this.upstreams[0];
    const at = (age, kind, text) => ({ t: this.base - age, kind, upstream: name, text });
    const first = [at(840, "reload", "reloaded: 1 option changed, 0 waiting for a restart"), at(700, "limit", "limit 52 to 54: grow")];
    if (this.state === "idle") return first;
    return [...first,
      at(this.since + 519, "endpoint", "10.0.0.3:80 ejected: slow"), at(this.since + 518, "verdict", "fine to sick_replica"),
      at(this.since + 470, "endpoint", "10.0.0.3:80 available"), at(this.since + 469, "verdict", "sick_replica to fine"),
      at(this.since, "verdict", `fine to ${this.cause}`), at(this.since - 2, "limit", "limit 53 to 48: queueing"),
      at(this.since - 9, "limit", "limit 48 to 44: queueing"),
      ...(this.state === "hostile" ? [at(3, SCRIPT, IMAGE)] : [])];
  }

  tick(view, upstream, now, first, asked) {
    const index = Math.max(0, this.upstreams.indexOf(upstream));
    const open = this.state === "many" ? 997 : this.state === "sick" ? 2 : 3;
    const upstreams = this.upstreams.map((name, u) => {
      const [offered, admitted, refused, failed, in_flight, waiting, limit, p50_ms, p99_ms, baseline_ms, cause] = this.row(u, now);
      return { name, state: u === 0 ? this.word : "HEALTHY", cause, for_s: u === 0 ? now - this.base + this.since : 4000,
        offered, admitted, refused, failed, in_flight, waiting, limit, limit_min: 1, limit_max: 1024, limit_reason: u === 0 ? "queueing" : "hold",
        p50_ms, p99_ms, baseline_ms, replicas: u === 0 ? this.replicas : 3, replicas_open: u === 0 ? open : 3 };
    });
    const worst = upstreams[0];
    const [sentence, next_step] = CAUSES[this.cause];
    const tick = {
      now, state: this.word, draining: this.state === "draining",
      verdict: { upstream: worst.name, cause: this.cause, sentence, next_step, for_s: worst.for_s,
        evidence: { offered: worst.offered, answered: worst.admitted, refused: worst.refused, latency_ms: worst.p50_ms, usual_offered: 580, usual_latency_ms: 22, best_answered: 622 } },
      totals: { received: 1e6 + now, answered: 9e5, refused: 1e5, aborted: 3, active: worst.in_flight, critical_shed: 0 },
      memory: { usage: this.state === "memory" ? 0.91 : 0.41, readable: true, ceiling: 532_676_608, pressure: this.state === "memory" ? "high" : "normal" },
      upstreams,
      overrides: this.state === "draining" || this.state === "sick" ? [{ id: "o1", kind: "drain", what: "checkout 10.0.0.1:80", left_s: Math.max(0, 1200 - (now - this.base)) }] : [],
      events: now % 7 === 0 && this.state !== "idle" ? [{ t: now, kind: "limit", upstream: worst.name, text: `limit ${worst.limit} to ${worst.limit + 1}: grow` }] : [],
      row: this.row(index, now),
    };
    this.member(view, tick, now, first, asked, worst);
    return tick;
  }

  member(view, tick, now, first, asked, worst) {
    if (view === "refusals") tick.refusals = this.refusals(now, worst);
    else if (view === "limit") tick.limit = this.limit(now, worst);
    else if (view === "replicas") tick.replicas = this.replica_page(now, asked);
    else if (view === "memory") Object.assign(tick.memory, this.memory(now, first));
    else if (view === "config" && first) tick.config = { text: CONFIG, changed_since_start: ["admission.limit.max_limit"], needs_restart: this.state === "idle" ? [] : ["server.max_connections"] };
  }

  refusals(now, worst) {
    const all = worst.refused;
    const party = (id, name, share) => ({ id, name, in_flight: Math.round(12 * share), bytes: Math.round(4e6 * share), refused: Math.round(9000 * share), refused_per_s: three(all * share), since_s: now - this.base + this.since });
    const names = this.state === "hostile" ? [SCRIPT, IMAGE, "a\u202eb"] : ["batch-export", "mobile-app", "partner-7"];
    const matrix = all === 0 ? {} : this.state === "memory"
      ? { memory: { critical: 0, high: 0, normal: three(all * 0.35), low: three(all * 0.6) }, bytes: { critical: 0, high: 0, normal: three(all * 0.05), low: 0 } }
      : { overload: { critical: 0, high: three(all * 0.01), normal: three(all * 0.28), low: three(all * 0.62) }, class_limit: { critical: 0, high: 0, normal: 0, low: three(all * 0.07) },
        actor_inflight: { critical: 0, high: 0, normal: three(all * 0.02), low: 0 } };
    return {
      matrix, shadow: all === 0 ? {} : { peer_limit: three(3 + noise(now, 30)) },
      actors: all === 0 ? [] : names.map((name, i) => party(`a${i}`, name, [0.5, 0.3, 0.1][i])),
      peers: all === 0 ? [] : [party("p0", "", 0.9)],
      recent: all === 0 ? [] : Array.from({ length: 12 }, (_, i) => ({ id: `${(now % 100000).toString(16)}${i.toString(16)}f4c19d`, age_ms: 40 + 120 * i, class: i % 5 === 0 ? "normal" : "low", reason: "overload", in_flight: worst.in_flight, limit: worst.limit, waited_ms: i % 5 === 0 ? 50 : 0 })),
    };
  }

  limit(now, worst) {
    const knee = Array.from({ length: 18 }, (_, i) => {
      const n = 3 * (i + 1);
      const answered = 618 * (1 - Math.exp(-n / 11)) * (0.99 + 0.02 * noise(i, 40));
      return [n, three(answered), three(Math.max(24, (n / 618) * 1000 * 1.25 + 3 * noise(i, 41))), Math.max(2, Math.round(260 * Math.exp(-(((n - 13) / 9) ** 2)) + 90 * Math.exp(-(((n - 45) / 5) ** 2))))];
    });
    return { demand: three(worst.in_flight + worst.waiting + worst.refused * worst.p50_ms / 1000),
      moves: [[41, 53, 48, "queueing"], [32, 48, 44, "queueing"], [20, 44, 46, "grow"], [6, 46, 45, "queueing"]].map(([age, from, to, reason]) => ({ t: this.base - age, from, to, reason })),
      knee, sentence: "40 to 48 in flight gave +1 %: a higher limit buys nothing" };
  }

  replica(id, now) {
    const sick = this.state === "many" ? id < 3 : this.state === "sick" && id === 2;
    const p50 = (sick ? 110 : 20 + 3 * noise(id, 50)) + (this.state === "many" && id % 10 === now % 10 ? noise(now, id) : 0);
    const endpoint = this.state === "hostile" && id === 1 ? `${SCRIPT}:80` : `10.${(id >> 16) & 255}.${(id >> 8) & 255}.${(id & 255) + 1}:80`;
    return [id, endpoint, sick ? (id === 1 ? "suspect" : "ejected") : "available", sick ? "slow" : "", sick ? now - this.base + this.since : 4000,
      three(p50), three(p50 * 3), sick ? 0 : 4, sick ? 0.5 : 0, 120, sick ? 2 : 31, 100, id % 2 ? "b" : "a", Array.from({ length: 20 }, (_, i) => three(p50 + 2 * noise(i, id)))];
  }

  replica_page(now, { sort, filter, bad, from, rows, sent }) {
    let all = Array.from({ length: this.replicas }, (_, id) => this.replica(id, now));
    if (filter) all = all.filter((r) => r[1].includes(filter));
    if (bad) all = all.filter((r) => r[2] !== "available");
    if (sort === "name") all.sort((a, b) => (a[1] < b[1] ? -1 : 1));
    else if (sort === "in_flight") all.sort((a, b) => b[7] - a[7] || a[0] - b[0]);
    else all.sort((a, b) => b[5] - a[5] || a[0] - b[0]);
    const page = all.slice(from, from + rows);
    const changed = page.filter((r) => !sent.has(r[0]) || this.state !== "many" || r[0] % 10 === now % 10);
    const sick = this.state === "many" ? 3 : this.state === "sick" ? 1 : 0;
    const bars = [[13.7, 0.1], [17.1, 0.3], [21.4, 0.5], [26.8, 0.1], [128, -1]];
    return { total: this.replicas, bad: sick, matching: all.length, from, cohort_p50_ms: 21, cohort_p99_ms: 63,
      histogram: bars.filter(([, share]) => share > 0 || sick > 0).map(([upper, share]) => [upper, share < 0 ? sick : Math.round(share * (this.replicas - sick))]), order: page.map((r) => r[0]),
      columns: ["id", "endpoint", "state", "reason", "since_s", "p50_ms", "p99_ms", "in_flight", "failures_per_s", "hedges", "hedge_wins", "weight", "zone", "spark"],
      rows: changed.map((r) => (sent.has(r[0]) ? [...r.slice(0, 13), null] : (sent.add(r[0]), r))) };
  }

  memory(now, first) {
    const mib = 1 << 20;
    const high = this.state === "memory";
    return {
      pools: [["write slab", 412, 1990, 3072, high ? 17 : 0, 32768], ["read regions", 300, 811, 1536, 0, 32768], ["gateway request heads", 41, 700, 2056, 0, 16896], ["connection table", 230, 411, 1536, 0, 640]]
        .map(([name, used, peak, capacity, exhausted, bytes_each]) => ({ name, used: used + (now % 5), peak, capacity, exhausted, bytes_each })),
      cgroup: { limit: 1024 * mib, used: (high ? 932 : 420) * mib, mine: 61 * mib },
      ...(first && { addends: ADDENDS.map(([name, m, note]) => ({ name, bytes: Math.round(m * mib), note })), hints: ["64 MiB less if http2.sessions_max is 512", "16 MiB less if server.max_connections is 1024"] }),
    };
  }
}

const ADDENDS = [["http2 sessions", 116, "http2.sessions_max × http2.session_bytes_max"], ["write slab", 96, "tcp_write_buffer_pool_size × tcp_write_buffer_size"],
  ["gateway response regions", 64.3, "response_head_bytes_max × requests at once"], ["read regions", 48, "conn_decrypted_buf_size × max_connections"],
  ["gateway request heads", 33.1, "head_bytes_max × requests at once"], ["gateway request bodies", 32.3, "conn_decrypted_buf_size × half the requests"],
  ["live view", 12.4, "upstreams, endpoints and history"], ["actors", 9.2, "actors.table_size"], ["connections", 8.1, "server.max_connections"], ["code and libraries", 64, "fixed"], ["access log", 4.2, "queue"]];

const CONFIG = `# weir 0.1.0
[admission]
max_concurrent = 1024
waiting_max = 256

[admission.limit]
policy = "auto"
min_limit = 1
max_limit = 1024  # changed by a reload

[server]
max_connections = 1536

[[upstream]]
name = "checkout"
endpoints = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]
`;
