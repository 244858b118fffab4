// What a verdict means for the person who reads it: where the fault is, which number shows it,
// which page tells more. Pure.
import { duration, num, ms, percent, rate, sentence, times } from "./format.js";

export const PLACES = ["Clients", "Gateway", "Service", "Replicas"];

// cause: [index in PLACES or -1, headline number, page that tells more, words in a chart]
const CAUSES = {
  fine: [-1, null, null, "fine"],
  own_bound: [1, "refused", "memory", "own bound"],
  memory: [1, "memory", "memory", "memory"],
  unreachable: [2, "answered", "replicas", "unreachable"],
  sick_replica: [3, "replicas", "replicas", "sick replica"],
  client: [0, "refused", "refusals", "client"],
  service_slower: [2, "latency", "limit", "service slower"],
  limit_low: [1, "refused", "limit", "limit low"],
  demand: [0, "offered", "limit", "demand"],
  unclear: [-1, null, "limit", "unclear"],
};

export function cause_facts(cause) {
  const [place, key, page, label] = CAUSES[cause] ?? [-1, null, null, String(cause ?? "")];
  return { place, key, page, label };
}

export const STATE_WORDS = { HEALTHY: "Healthy", PRESSURED: "Pressured", OVERLOADED: "Overloaded" };

export function state_word(state) {
  return STATE_WORDS[state] ?? sentence(state);
}

/** What the live region says: it changes with the verdict, not with its numbers. */
export function headline(tick) {
  const v = tick.verdict ?? {};
  return {
    state: tick.state,
    word: state_word(tick.state),
    sentence: sentence(v.sentence ?? "No upstream is configured"),
    next_step: sentence(v.next_step),
    upstream: v.upstream ?? "",
    since: v.for_s === undefined ? "" : `for ${duration(v.for_s)}`,
  };
}

/** The numbers that the verdict rests on: [{key, label, value, note}]. */
export function evidence(tick) {
  const e = tick.verdict?.evidence ?? {};
  const upstream = (tick.upstreams ?? []).find((u) => u.name === tick.verdict?.upstream) ?? {};
  return [
    { key: "offered", label: "Asked", value: rate(e.offered), note: against(e.offered, e.usual_offered, rate) },
    { key: "answered", label: "Answered", value: rate(e.answered),
      note: e.best_answered > 0 ? `best seen ${num(e.best_answered)}` : "" },
    { key: "refused", label: "Refused", value: rate(e.refused),
      note: e.offered > 0 && e.refused > 0 ? `${percent(e.refused / e.offered)} of what is asked` : "nothing" },
    { key: "latency", label: "Latency", value: ms(e.latency_ms),
      note: against(e.latency_ms, e.usual_latency_ms, ms) },
    { key: "replicas", label: "Replicas open", value: upstream.replicas ? `${num(upstream.replicas_open)} of ${num(upstream.replicas)}` : "–",
      note: upstream.replicas ? replicas_note(upstream, tick.verdict?.cause) : "" },
    { key: "memory", label: "Memory", value: tick.memory?.readable === false ? "–" : percent(tick.memory?.usage),
      note: tick.memory?.readable === false ? "cannot be read" : `pressure ${tick.memory?.pressure ?? "–"}` },
  ];
}

function replicas_note(u, cause) {
  const out = u.replicas - u.replicas_open;
  if (out > 0) return `${num(out)} out`;
  return cause === "sick_replica" ? "one is slow" : "all";
}

function against(value, usual, format) {
  if (!(usual > 0)) return "no usual yet";
  const ratio = value / usual;
  if (ratio >= 1.15) return `${times(ratio)} the usual ${format(usual)}`;
  if (ratio <= 0.85) return `below the usual ${format(usual)}`;
  return "as usual";
}
