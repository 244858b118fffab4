"""A name in an anonymous namespace stands in one source of its layer only.

The sanitizer presets compile several sources of a target as one (CMAKE_UNITY_BUILD, half the
time), and there two definitions of one private name meet: at best they do not compile, at worst
a call finds the other file's overload. What two files both need belongs into a header.
"""

import re

_OPEN = re.compile(r"^namespace \{$")
_AROUND = re.compile(r"^namespace ([\w: ]+) \{$")
_CLOSE = re.compile(r"^\}$")
_TYPE = re.compile(r"^(?:struct|union|class|enum(?: class| struct)?)\s+(\w+)(?![^;{]*;)")
_ALIAS = re.compile(r"^using\s+(\w+)(?:\s*=|\s+\w+;)")  # `using enum X;` brings all its names
_VARIABLE = re.compile(r"^(?:[\w:<>,&*\s\[\]]+?[\s&*>])(\w+)(?:\[[^\]]*\])*\s*(?:=|\{|;)")
_FUNCTION = re.compile(r"^(?:[\w:<>,&*\s\[\]().]*?[\s&*>])(\w+)\(")
_PREFIX = re.compile(r"^(?:\[\[\w+\]\]|inline|static|constexpr|constinit|thread_local)\s+")
_NO_DEFINITION = re.compile(r"^(?:[\s}#)]|using (?!enum|\w+ =)|template|TEST|INSTANTIATE|"
                            r"MATCHER|(?:struct|class|union) \w+;|static_assert|namespace|"
                            r"public:|private:|protected:|extern\b|$)")


def check(tree):
    seen = {}  # (layer, is_test, namespace, name) -> (file, the alias it stands for or None)
    for file in tree.files.values():
        if file.suffix != "cc" or file.top != "src" or file.is_bench:
            continue
        for line, name, alias in private_names(file):
            key = (file.layer, file.is_test, *name)
            first, meaning = seen.setdefault(key, (file, alias))
            if first is file or (alias is not None and alias == meaning):
                continue
            if tree.exceptions.get("private_names", file.path) is None:
                yield file.finding(line, f"`{name[-1]}` is a private name of {first.path} already: "
                                         "another name, or one definition in a header")


def private_names(file):
    """(line, (namespace, name), alias): what stands at column 0 inside `namespace {`, and constants
    outside of it, which are private too."""
    inside, around = False, ""
    for number, line in enumerate(file.code.split("\n"), 1):
        line = line.rstrip()
        if _OPEN.match(line):
            inside = True
        elif match := _AROUND.match(line):
            around = match.group(1).replace("::inline v0", "")
        elif inside and _CLOSE.match(line) and "namespace" in file.lines[number - 1]:
            inside = False
        elif (inside and not _NO_DEFINITION.match(line)) or line.startswith("constexpr "):
            name, alias = _name_of(line)
            if name:
                yield number, (around, name), alias


def _name_of(line):
    if match := _ALIAS.match(line):
        return match.group(1), line
    while match := _PREFIX.match(line):
        line = line[match.end():]
    if match := _TYPE.match(line):
        return match.group(1), None
    for kind in (_VARIABLE, _FUNCTION):
        if match := kind.match(line):
            return match.group(1), None
    return None, None
