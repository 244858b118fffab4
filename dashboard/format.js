// Numbers, durations and names as people read them. Pure. What is not known is an en dash.

const NONE = "–";
const known = (v) => typeof v === "number" && Number.isFinite(v);

/** Three significant digits: 0.41, 4.2, 612, 1,260, 12.6k, 1.26M. */
export function num(v) {
  if (!known(v)) return NONE;
  const a = Math.abs(v);
  if (a >= 999_500) return `${trim(v / 1e6)}M`;
  if (a >= 9_995) return `${trim(v / 1e3)}k`;
  if (a >= 999.5) return thousands(Math.round(v));
  return trim(v);
}

function trim(v) {
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a >= 99.5) return String(Math.round(v));
  if (a >= 9.95) return String(Number(v.toFixed(1)));
  return String(Number(v.toFixed(2)));
}

function thousands(v) {
  return String(v).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function count(v) {
  return known(v) ? thousands(Math.round(v)) : NONE;
}

export function rate(v) {
  return known(v) ? `${num(v)}/s` : NONE;
}

export function ms(v) {
  if (!known(v)) return NONE;
  if (v >= 59_950) return `${trim(v / 60_000)} min`;
  if (v >= 999.5) return `${trim(v / 1000)} s`;
  return `${trim(v)} ms`;
}

export function bytes(v) {
  if (!known(v)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let n = v;
  while (Math.abs(n) >= 1023.95 && unit + 1 < units.length) {
    n /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

/** 0.41 is "41 %". */
export function percent(share) {
  if (!known(share)) return NONE;
  const p = share * 100;
  return `${p > 0 && p < 9.95 ? Number(p.toFixed(1)) : Math.round(p)} %`;
}

/** 2.17 is "2.2 ×". */
export function times(ratio) {
  if (!known(ratio)) return NONE;
  return `${ratio >= 9.95 ? Math.round(ratio) : ratio.toFixed(1)} ×`;
}

/** 41 is "41 s", 250 is "4 min 10 s", 5400 is "1 h 30 min". */
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) {
    const minutes = Math.floor((s % 3600) / 60);
    return minutes ? `${Math.floor(s / 3600)} h ${minutes} min` : `${Math.floor(s / 3600)} h`;
  }
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** Local time of a Unix second: 03:07:41. */
export function clock(t) {
  if (!known(t)) return NONE;
  const d = new Date(t * 1000);
  return [d.getHours(), d.getMinutes(), d.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

export function sentence(s) {
  const clean = String(s ?? "").trim();
  return clean ? clean[0].toUpperCase() + clean.slice(1) : "";
}

/** sick_replica is "sick replica". */
export function words(name) {
  return String(name ?? "").replaceAll("_", " ");
}
