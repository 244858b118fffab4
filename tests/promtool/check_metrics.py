#!/usr/bin/python3
"""Pipes a metrics page through `promtool check metrics` and fails on anything it says, except the
listed remarks about names that are fixed by Weir's interface.

usage: check_metrics.py PROGRAM [ARG…]   the program prints the page
       check_metrics.py --file PAGE
"""
import re
import subprocess
import sys

# Names older than the advice; renaming them would break every dashboard that uses them.
ALLOWED = {
    ("weir_admission_rejected_reason", 'counter metrics should have "_total" suffix'),
    ("weir_write_slab_exhaustion_count", 'counter metrics should have "_total" suffix'),
    ("weir_write_slab_exhaustion_count",
     'non-histogram and non-summary metrics should not have "_count" suffix'),
    ("weir_admission_queue_wait_ms", "metric names should not contain abbreviated units"),
}


def page_of(arguments):
    if arguments[0] == "--file":
        with open(arguments[1], "rb") as file:
            return file.read()
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout


def main():
    page = page_of(sys.argv[1:])
    judge = subprocess.run(["promtool", "check", "metrics"], input=page,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    remarks = [line for line in judge.stdout.decode().splitlines() if line.strip()]
    bad = []
    for line in remarks:
        match = re.match(r"(\S+) (.*)", line)
        if not match or (match[1], match[2]) not in ALLOWED:
            bad.append(line)
    if judge.returncode not in (0, 3):  # 3: remarks only
        bad.append(f"promtool ended with {judge.returncode}")
    if not page.strip():
        bad.append("the page is empty")
    families = page.count(b"# TYPE ")
    print(f"{families} families, {len(remarks)} remarks, {len(bad)} of them not allowed")
    for line in bad:
        print("  " + line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
