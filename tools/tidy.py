#!/usr/bin/env python3
"""The house rules, checked as a test: `python3 tools/tidy.py [root]`.

Each rule is a module of tidy_rules/ with a function check(tree) that yields findings; CONTRIBUTING
says what they are for. A case that has a good reason to break one is listed, with the reason, in
tools/tidy_exceptions.toml, and an entry that is no longer needed is named.
"""

import pathlib
import sys
import time

sys.dont_write_bytecode = True

from tidy_rules import (calls, docs, layers, layout, one_definition, private_names,  # noqa: E402
                        sizes, sources, tables, words)
from tidy_rules.tree import Tree  # noqa: E402

RULES = (layers, calls, layout, sizes, sources, one_definition, private_names, docs, tables, words)


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else __file__).resolve()
    if not arguments:
        root = root.parent.parent
    started = time.monotonic()
    tree = Tree.from_disk(root)
    findings = sorted({finding for rule in RULES for finding in rule.check(tree)})
    for finding in findings:
        print(finding)
    for finding in tree.exceptions.unused():
        print(f"note: {finding}")
    if findings:
        print("A case with a good reason is listed, with it, in tools/tidy_exceptions.toml.")
    print(f"tidy: {len(tree.files)} files, {len(findings)} findings, "
          f"{time.monotonic() - started:.1f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
