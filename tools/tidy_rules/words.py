"""Words that do not belong into the tree."""

import re

# Written in pieces, so that this file passes its own rule.
_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# Paths of one machine: a word to look for first, then the exact form.
_FOREIGN = tuple((hint, re.compile(pattern)) for hint, pattern in (
    ("/wo" "rk/", r"/wo" r"rk/(?:main|wt|shared)\b"),
    ("/ro" "ot/", r"/ro" r"ot/"),
    ("/ho" "me/", r"/ho" r"me/\w"),
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
