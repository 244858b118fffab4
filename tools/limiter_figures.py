#!/usr/bin/env python3
"""The scenarios under scenarios/limiter/ against the best fixed limit of each of their phases.

    tools/limiter_figures.py [--weir build/release/weir] --oracles [NAME ...]
    tools/limiter_figures.py [--weir build/release/weir] --table [--seeds 8] [--label after]
                             [NAME ...]

--oracles searches the best fixed limit of each phase and writes it into the scenario files.
--table runs every scenario with several seeds and writes the worst of each phase to
docs/reference/limiter-figures.md, in the column of the label: one column per state of the limiter.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "scenarios/limiter"
PAGE = ROOT / "docs/reference/limiter-figures.md"
DATA = ROOT / "docs/reference/limiter-figures.json"
BEGIN = "<!-- begin: written by tools/limiter_figures.py -->"
END = "<!-- end -->"
GOODPUT = ": goodput of the best fixed limit"
REFUSED = ": light load is not refused"
LATENCY = ": no queue inside the service"


def scenarios(names):
    for path in sorted(FOLDER.glob("*.toml")):
        if not names or path.stem in names:
            yield path


def simulate(weir, *arguments):
    done = subprocess.run([weir, "simulate", *arguments], capture_output=True, text=True,
                          cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.stdout


def write_oracles(weir, path):
    found = re.findall(r"oracle = \{.*?\}", simulate(weir, str(path), "--search-fixed"))
    head, *phases = re.split(r"(?m)^(?=\[\[phase\]\]$)", path.read_text(encoding="utf-8"))
    if len(found) != len(phases):
        sys.exit(f"{path}: {len(phases)} phases, {len(found)} oracles")
    for i, phase in enumerate(phases):
        phase = re.sub(r"(?m)^oracle = .*\n", "", phase)
        phases[i] = re.sub(r"(?m)^(to = .*\n)", lambda m, i=i: m[1] + found[i] + "\n", phase,
                           count=1)
    path.write_text(head + "".join(phases), encoding="utf-8")
    print(path.stem, *found, sep="\n  ")


def oracles_of(path):
    """Phase name -> (goodput of the best fixed limit, the share that is wanted)."""
    known = {}
    for phase in re.split(r"(?m)^\[\[phase\]\]$", path.read_text(encoding="utf-8"))[1:]:
        name = re.search(r'name = "(.*)"', phase)[1]
        goodput = re.search(r"goodput = ([0-9.]+)", phase)
        known[name] = float(goodput[1]) if goodput else 0
    return known


def cells(weir, path, seeds):
    """Phase -> the worst seed's goodput share, refusals and latency factor, and what fails."""
    report = json.loads(simulate(weir, str(path), "--seeds", str(seeds), "--json"))[0]
    phases = {}
    for verdict in report["verdicts"]:
        for suffix, key in ((GOODPUT, "goodput"), (REFUSED, "refused"), (LATENCY, "latency")):
            if not verdict["name"].endswith(suffix):
                continue
            cell = phases.setdefault(verdict["name"][:-len(suffix)], {"failed": 0})
            cell[key] = verdict["worst"] or 0
            if verdict["failed"]:
                cell["failed"] = max(cell["failed"], verdict["failed"])
                cell[key + "_fails"] = True
            if key == "latency":
                cell[key] = 3 * cell[key] / verdict["max"] if verdict["max"] else 0
    for name, goodput in oracles_of(path).items():
        if goodput and "goodput" in phases.get(name, {}):
            phases[name]["goodput"] /= goodput
    return phases


def shown(cell):
    if cell is None:
        return "–"
    parts = [f"{cell['goodput']:.2f}" if "goodput" in cell else ""]
    if "refused" in cell:
        parts.append(f"{100 * cell['refused']:.2f} %")
    if "latency" in cell:
        parts.append(f"{cell['latency']:.1f} ×")
    text = ", ".join(part for part in parts if part)
    return f"**{text}**" if cell["failed"] else text


def write_page(data):
    labels = list(data["labels"])
    lines = [BEGIN, "", "| scenario, phase | " + " | ".join(labels) + " |",
             "|---|" + "---|" * len(labels)]
    good = dict.fromkeys(labels, 0)
    total = dict.fromkeys(labels, 0)
    rows = {row for label in labels for row in data["labels"][label]}
    for row in sorted(rows):
        columns = []
        for label in labels:
            cell = data["labels"][label].get(row)
            columns.append(shown(cell))
            if cell is not None:
                total[label] += 1
                good[label] += 0 if cell["failed"] else 1
        lines.append(f"| {row} | " + " | ".join(columns) + " |")
    lines.append("| **phases that are good** | "
                 + " | ".join(f"{good[label]} of {total[label]}" for label in labels) + " |")
    lines += ["", END]
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + "\n".join(lines) + after, encoding="utf-8")
    for label in labels:
        print(f"{label}: {good[label]} of {total[label]} phases good")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--weir", default=str(ROOT / "build/release/weir"))
    parser.add_argument("--oracles", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--label", default="now")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.oracles:
        for path in scenarios(options.names):
            write_oracles(options.weir, path)
    if options.table:
        data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"labels": {}}
        column = data["labels"].setdefault(options.label, {})
        for path in scenarios(options.names):
            for phase, cell in cells(options.weir, path, options.seeds).items():
                column[f"{path.stem}, {phase}"] = cell
        DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        write_page(data)


if __name__ == "__main__":
    main()
