"""Words that do not belong into the tree."""

import re

_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# Names of other projects and of one machine; in pieces, so that this file passes its own rule.
_FOREIGN = re.compile(
    r"\bder" r"iva(?:_|\b)|omni" r"graph|val" r"kyria|\bval" r"k_|hyper" r"scale\b"
    r"|\.\./sha" r"red\b|/wo" r"rk/(?:main|wt|shared)\b|/ro" r"ot/|/ho" r"me/\w"
    r"|\bse" r"ed 00\d|\bresearch/\w+\.md|\bDES" r"IGN\.md\b",
    re.IGNORECASE)


def check(tree):
    for file in tree.files.values():
        for match in _UNFINISHED.finditer(file.text):
            yield file.finding(file.line_of(match.start()),
                               f"{match.group()}: finish it, or leave it out")
        for match in _FOREIGN.finditer(file.text):
            yield file.finding(file.line_of(match.start()),
                               f"`{match.group()}` does not belong here")
