#!/usr/bin/env python3
"""Runs every scenario with every limiter and writes the tables of docs/reference/limiters.md.

    tools/limiter_table.py [--weir build/release/weir]
                           [--check [--compared S | --searched S | --rows]]

With --check nothing is written; exit 1, and what differs, when the page is not what the runs say.
One scenario at a time, as ctest does it: --compared S looks at S in the comparisons, --searched S
at S against the best fixed limit (exit 1 too where that verdict fails), --rows at which scenarios
are there at all.
"""

import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/limiters.md"
BEGIN = "<!-- begin: written by tools/limiter_table.py -->"
END = "<!-- end -->"
LIMITERS = ["none", "fixed", "aimd", "vegas", "gradient2", "auto"]


def scenarios():
    """Those with admission somewhere; the others show what happens without. Those about the
    diagnosis say nothing about limiters."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        if "[service.admission]" in text and not path.stem.startswith("diagnosis-"):
            yield path, text


def simulate(weir, *arguments):
    done = subprocess.run([weir, "simulate", *arguments], capture_output=True, text=True,
                          cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.returncode, done.stdout


def number(value):
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def guarded(text):
    """Index of the first service with admission: the one whose latency is shown."""
    services = re.split(r"^\[\[service\]\]$", text, flags=re.MULTILINE)[1:]
    for index, service in enumerate(services):
        if re.search(r"^\[service\.admission\]$", service.split("[[load]]")[0], re.MULTILINE):
            return index
    return 0


def compared(weir, path, text):
    _, shown = simulate(weir, str(path.relative_to(ROOT)), "--compare", ",".join(LIMITERS),
                        "--json")
    reports = json.loads(shown)
    service = guarded(text)
    runs = {}
    for name, report in zip(LIMITERS, reports):
        verdicts = [v for v in report["verdicts"] if v["measure"] != "diagnosed"]
        runs[name] = {
            "goodput": sum(load["goodput_per_second"] for load in report["loads"]),
            "p99": report["services"][service]["dispatch_p99_ms"],
            "held": sum(v["holds"] for v in verdicts),
            "of": len(verdicts),
        }
    return runs


def is_stationary(text):
    return re.search(r"^stationary = true", text, re.MULTILINE)


def stationary_row(stem, shown):
    limit, best = re.search(r"best fixed limit (\d+) gets ([\d.]+)/s", shown).groups()
    share = re.search(r"([\d.]+) % of it", shown)[1]
    factor = re.search(r"([\d.]+) times the unloaded", shown)[1]
    return f"| {stem} | {limit} | {number(float(best))}/s | {share} % | {factor} × unloaded |"


def stationary_table(weir):
    lines = ["| scenario | best fixed limit | it gets | `auto` gets | `auto`'s p99 |",
             "|---|---:|---:|---:|---:|"]
    for path, text in scenarios():
        if is_stationary(text):
            _, shown = simulate(weir, str(path.relative_to(ROOT)), "--search-fixed")
            lines.append(stationary_row(path.stem, shown))
    return lines


def compared_row(stem, runs):
    cells = []
    for run in runs.values():
        held = "all" if run["held"] == run["of"] else f"**{run['held']}/{run['of']}**"
        cells.append(f"{number(run['goodput'])} · {number(run['p99'])} · {held}")
    return f"| {stem} | " + " | ".join(cells) + " |"


def compare_table(weir):
    lines = ["| scenario | " + " | ".join(f"`{name}`" for name in LIMITERS) + " |",
             "|---" + "|---:" * len(LIMITERS) + "|"]
    behind = []
    for path, text in scenarios():
        runs = compared(weir, path, text)
        lines.append(compared_row(path.stem, runs))
        behind += losses(path.stem, runs)
    return lines, behind


def losses(stem, runs):
    """Where another limiter holds more verdicts than auto, answers 1 % more, or as much and 10 %
    sooner."""
    auto = runs["auto"]
    found = []
    for name in LIMITERS[1:-1]:
        run = runs[name]
        share = run["goodput"] / auto["goodput"]
        sooner = share >= 0.99 and run["p99"] <= 0.9 * auto["p99"] and run["held"] >= auto["held"]
        if run["held"] > auto["held"] or share >= 1.01 or sooner:
            found.append(f"| {stem} | `{name}` | {run['held']} of {run['of']}, `auto` "
                         f"{auto['held']} | {share - 1:+.1%} | {number(run['p99'])} ms, `auto` "
                         f"{number(auto['p99'])} ms |")
    return found


def tables(weir):
    compare, behind = compare_table(weir)
    return "\n".join([
        "### Where nothing changes: against the best fixed limit", "", *stationary_table(weir), "",
        "### All scenarios, all limiters", "",
        "Goodput per second · p99 from dispatch in ms, at the first service with admission · "
        "verdicts held.", "", *compare, "",
        "### Where another one is ahead of `auto`", "",
        "It holds more verdicts, answers at least 1 % more, or as much with a p99 at least 10 % "
        "lower.",
        "", "| scenario | limiter | verdicts | goodput | p99 |", "|---|---|---|---:|---|", *behind])


def same(page, runs):
    """0 if they are; else 1, and how they differ is printed."""
    if page == runs:
        return 0
    print("\n".join(difflib.unified_diff(page, runs, str(PAGE.relative_to(ROOT)), "the runs", n=0,
                                         lineterm="")))
    print("run: tools/limiter_table.py")
    return 1


def rows(table, section, stem=""):
    """The rows of one of the three tables, those of one scenario if it is named."""
    lines = table.split("\n### ")[1 + section].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|---")) + 1
    return [line for line in lines[start:] if line.startswith(f"| {stem} |" if stem else "|")]


def the_scenario(stem):
    return next((path, text) for path, text in scenarios() if path.stem == stem)


def check_rows(table):
    def stems(section):
        return [row.split(" | ")[0].removeprefix("| ") for row in rows(table, section)]
    every = list(scenarios())
    return max(same(stems(0), [path.stem for path, text in every if is_stationary(text)]),
               same(stems(1), [path.stem for path, _ in every]))


def check_compared(weir, stem, table):
    runs = compared(weir, *the_scenario(stem))
    return same([*rows(table, 1, stem), *rows(table, 2, stem)],
                [compared_row(stem, runs), *losses(stem, runs)])


def check_searched(weir, stem, table):
    path, _ = the_scenario(stem)
    status, shown = simulate(weir, str(path.relative_to(ROOT)), "--search-fixed")
    print(shown)
    return max(status, same(rows(table, 0, stem), [stationary_row(stem, shown)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/release/weir"))
    parser.add_argument("--check", action="store_true")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--compared", metavar="SCENARIO")
    one.add_argument("--searched", metavar="SCENARIO")
    one.add_argument("--rows", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    table, tail = rest.split(END)
    if options.rows:
        return check_rows(table)
    if options.compared:
        return check_compared(options.weir, options.compared, table)
    if options.searched:
        return check_searched(options.weir, options.searched, table)
    new = f"{head}{BEGIN}\n{tables(options.weir)}\n{END}{tail}"
    if options.check:
        return same(page.splitlines(), new.splitlines())
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
