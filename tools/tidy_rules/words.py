"""Words that do not belong into the tree."""

import re

# Written in pieces, so that this file passes its own rule.
_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# Names of other projects and of one machine: a word to look for first, then the exact form.
_FOREIGN = tuple((hint, re.compile(pattern)) for hint, pattern in (
    ("der" "iva", r"\bder" r"iva(?:_|\b)"),
    ("omni" "graph", "omni" "graph"),
    ("val" "k", r"val" r"kyria|\bval" r"k_"),
    ("hyper" "scale", r"hyper" r"scale\b"),
    ("../sha" "red", r"\.\./sha" r"red\b"),
    ("/wo" "rk/", r"/wo" r"rk/(?:main|wt|shared)\b"),
    ("/ro" "ot/", r"/ro" r"ot/"),
    ("/ho" "me/", r"/ho" r"me/\w"),
    ("se" "ed 00", r"\bse" r"ed 00\d"),
    ("research/", r"\bresearch/\w+\.md"),
    ("des" "ign.md", r"\bdes" r"ign\.md\b"),
))


def check(tree):
    for file in tree.files.values():
        for match in _UNFINISHED.finditer(file.text):
            yield file.finding(file.line_of(match.start()),
                               f"{match.group()}: finish it, or leave it out")
        text = file.text.lower()
        for hint, pattern in _FOREIGN:
            if hint in text:
                for match in pattern.finditer(text):
                    yield file.finding(file.line_of(match.start()),
                                       f"`{match.group()}` does not belong here")
