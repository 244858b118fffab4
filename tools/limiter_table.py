#!/usr/bin/env python3
"""Runs every scenario with every limiter and writes the tables of docs/reference/limiters.md.

    tools/limiter_table.py [--weir build/release/weir] [--check]

With --check nothing is written; exit 1 when the page is not what the runs say.
"""

import argparse
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
    """Those with admission somewhere; the others show what happens without."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        if "[service.admission]" in text:
            yield path, text


def simulate(weir, *arguments):
    done = subprocess.run([weir, "simulate", *arguments], capture_output=True, text=True,
                          cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.stdout


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
    reports = json.loads(simulate(weir, str(path.relative_to(ROOT)), "--compare",
                                  ",".join(LIMITERS), "--json"))
    service = guarded(text)
    runs = {}
    for name, report in zip(LIMITERS, reports):
        verdicts = report["verdicts"]
        runs[name] = {
            "goodput": sum(load["goodput_per_second"] for load in report["loads"]),
            "p99": report["services"][service]["dispatch_p99_ms"],
            "held": sum(v["holds"] for v in verdicts),
            "of": len(verdicts),
        }
    return runs


def stationary_table(weir):
    lines = ["| scenario | best fixed limit | it gets | `auto` gets | `auto`'s p99 |",
             "|---|---:|---:|---:|---:|"]
    for path, text in scenarios():
        if not re.search(r"^stationary = true", text, re.MULTILINE):
            continue
        shown = simulate(weir, str(path.relative_to(ROOT)), "--search-fixed")
        limit, best = re.search(r"best fixed limit (\d+) gets ([\d.]+)/s", shown).groups()
        share = re.search(r"([\d.]+) % of it", shown)[1]
        factor = re.search(r"([\d.]+) times the unloaded", shown)[1]
        lines.append(f"| {path.stem} | {limit} | {number(float(best))}/s | {share} % | "
                     f"{factor} × unloaded |")
    return lines


def compare_table(weir):
    lines = ["| scenario | " + " | ".join(f"`{name}`" for name in LIMITERS) + " |",
             "|---" + "|---:" * len(LIMITERS) + "|"]
    behind = []
    for path, text in scenarios():
        runs = compared(weir, path, text)
        cells = []
        for run in runs.values():
            held = "all" if run["held"] == run["of"] else f"**{run['held']}/{run['of']}**"
            cells.append(f"{number(run['goodput'])} · {number(run['p99'])} · {held}")
        lines.append(f"| {path.stem} | " + " | ".join(cells) + " |")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build/release/weir"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    new = f"{head}{BEGIN}\n{tables(options.weir)}\n{END}{tail}"
    if options.check:
        return 0 if new == page else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
