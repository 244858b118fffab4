// As much TOML as a configuration printed by Weir has: sections and one key per line. Pure.

/** [{section, key, value, line}] of each `key = value`; a section of an array has its index. */
export function settings(source) {
  const found = [];
  const counts = new Map();
  let section = "";
  source.split("\n").forEach((raw, line) => {
    const text = raw.trim();
    const array = /^\[\[([^\]]+)\]\]/.exec(text);
    const table = /^\[([^[\]]+)\]/.exec(text);
    if (array) {
      const index = counts.get(array[1]) ?? 0;
      counts.set(array[1], index + 1);
      section = `${array[1]}[${index}]`;
    } else if (table) {
      section = table[1];
    } else {
      const pair = /^([A-Za-z0-9_-]+)\s*=\s*(.*)$/.exec(text);
      if (pair) found.push({ section, key: pair[1], value: without_comment(pair[2]), line });
    }
  });
  return found;
}

function without_comment(value) {
  let quoted = false;
  for (let i = 0; i < value.length; ++i) {
    if (value[i] === '"' && value[i - 1] !== "\\") quoted = !quoted;
    if (value[i] === "#" && !quoted) return value.slice(0, i).trim();
  }
  return value.trim();
}

export function full_name({ section, key }) {
  return section === "" ? key : `${section}.${key}`;
}

/** Text as TOML writes it: numbers, true, false and lists as they are, all else in quotes. */
export function literal(value) {
  const v = value.trim();
  if (/^(true|false|[+-]?\d+(\.\d+)?|\[.*\]|".*")$/.test(v)) return v;
  return JSON.stringify(v);
}

/** A diff of the lines that `changes` ([full name, value]) would change. */
export function diff(source, changes) {
  const known = new Map(settings(source).map((s) => [full_name(s), s]));
  const by_section = new Map();
  for (const [name, value] of changes) {
    const dot = name.lastIndexOf(".");
    const section = dot < 0 ? "" : name.slice(0, dot);
    const lines = by_section.get(section) ?? [];
    const key = name.slice(dot + 1);
    const before = known.get(name);
    if (before) lines.push(`-${key} = ${before.value}`);
    lines.push(`+${key} = ${literal(value)}`);
    by_section.set(section, lines);
  }
  return [...by_section].flatMap(([section, lines]) => (section === "" ? lines : [` [${section.replace(/\[\d+\]$/, "")}]`, ...lines])).join("\n");
}

/** A word of a shell command. */
export function shell_word(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
