#!/usr/bin/env python3
"""Holds gcovr's summary against thresholds: coverage_check.py SUMMARY.json THRESHOLDS.txt

A threshold is a line `path percent`: of the lines of all files under that path, at least so many
percent are run by tests. Exit status 1 when one is missed or a path matches nothing.
"""

import json
import pathlib
import sys


def read_thresholds(text):
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"line {number}: expected `path percent`")
        yield words[0], float(words[1])


def coverage_of(files, prefix):
    """(lines run, lines) of the files under prefix."""
    chosen = [f for f in files if f["filename"].startswith(prefix)]
    return sum(f["line_covered"] for f in chosen), sum(f["line_total"] for f in chosen)


def judge(files, thresholds):
    """(prefix, percent or None, wanted, worst files) per threshold."""
    for prefix, wanted in thresholds:
        covered, total = coverage_of(files, prefix)
        percent = 100 * covered / total if total else None
        under = [f for f in files if f["filename"].startswith(prefix)]
        worst = sorted(under, key=lambda f: f["line_covered"] - f["line_total"])[:3]
        yield prefix, percent, wanted, [f for f in worst if f["line_covered"] < f["line_total"]]


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    summary, thresholds = (pathlib.Path(a).read_text() for a in arguments)
    files = json.loads(summary)["files"]
    missed = 0
    for prefix, percent, wanted, worst in judge(files, list(read_thresholds(thresholds))):
        is_met = percent is not None and percent >= wanted
        missed += not is_met
        shown = "  none" if percent is None else f"{percent:5.1f}%"
        print(f"{'ok ' if is_met else 'LOW'} {prefix:32} {shown}  (at least {wanted:g}%)")
        for file in worst if not is_met else ():
            lines = file["line_total"] - file["line_covered"]
            print(f"      {file['filename']}: {lines} lines not run")
    covered, total = coverage_of(files, "")
    print(f"    all {len(files)} files {'':17} {100 * covered / max(total, 1):5.1f}%")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
