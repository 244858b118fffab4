"""A type of one name is defined in one file only.

Two layouts behind one name are undefined behaviour that no compiler of a single source can see. The
preset `odr` compares all that is linked into weir; this rule also sees headers that nothing in weir
uses.
"""

import re

_OPEN = re.compile(r"^(?:inline )?namespace ?([\w: ]*)\{$")
_CLOSE = re.compile(r"^\}$")
_TYPE = re.compile(r"^(?:template <.*> )?(?:struct|union|class|enum(?: class| struct)?)\s+"
                   r"(?:alignas\([^)]*\)\s+|\[\[\w+\]\]\s+)*(\w+)(?![\w:<;])(?![^{]*;)")


def check(tree):
    seen = {}  # (namespace, name) -> file
    for file in tree.files.values():
        if file.suffix not in ("h", "cc") or file.top not in ("include", "src", "apps"):
            continue
        if file.is_test or file.is_bench:
            continue
        for line, name in types(file):
            first = seen.setdefault(name, file)
            if first is not file and tree.exceptions.get("one_definition", file.path) is None:
                yield file.finding(line, f"`{'::'.join(name)}` is defined in {first.path} already: "
                                         "another name or another namespace")


def types(file):
    """(line, (namespace, name)) of each type at column 0 that is not in `namespace {`."""
    around = []
    for number, line in enumerate(file.code.split("\n"), 1):
        line = line.rstrip()
        if match := _OPEN.match(line):
            around.append(match.group(1).replace("inline v0", "").strip(" :"))
        elif _CLOSE.match(line) and "namespace" in file.lines[number - 1]:
            if around:
                around.pop()
        elif (match := _TYPE.match(line)) and "" not in around:
            yield number, ("::".join(around).replace("::::", "::"), match.group(1))
