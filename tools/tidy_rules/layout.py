"""How a file looks: columns, whitespace, header guards, names."""

import re

COLUMNS = 100
_WIDE_SUFFIXES = {"cc", "h", "py", "sh", "cmake"}
_BLAND_NAMES = {"util", "utils", "common", "helper", "helpers", "misc"}
_BARE_NOLINT = re.compile(r"\bNOLINT(?:NEXTLINE|BEGIN|END)?\b(?!\()")
_NAMESPACE = re.compile(r"^namespace\s+(weir\b[^{;=]*?)\s*\{", re.MULTILINE)
# What embedders use: inline, so that weir::Name works too.
_INLINE_LAYERS = ("policy", "control", "server", "client")
# clang refuses an inline namespace that is opened again without the word; g++ does not.
_NOT_INLINE = re.compile(r"^namespace\s+weir::(?:inline v0::)?(%s)\b" % "|".join(_INLINE_LAYERS),
                         re.MULTILINE)
_SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def check(tree):
    for file in tree.files.values():
        yield from _check_whitespace(file)
        if file.suffix in _WIDE_SUFFIXES or file.name in ("CMakeLists.txt", "dev"):
            for number, line in enumerate(file.lines, 1):
                if len(line) > COLUMNS and "://" not in line:
                    yield file.finding(number, f"{len(line)} columns; {COLUMNS} is the limit")
        if file.is_cpp:
            yield from _check_cpp(file)


def _check_whitespace(file):
    if file.suffix in ("md", "txt", "") and file.name != "CMakeLists.txt":
        return
    if "\r" in file.text:
        yield file.finding(0, "carriage returns")
    if file.text and not file.text.endswith("\n"):
        yield file.finding(len(file.lines), "no newline at the end")
    for number, line in enumerate(file.lines, 1):
        if line.endswith((" ", "\t")):
            yield file.finding(number, "whitespace at the end of the line")
        if "\t" in line and file.is_cpp:
            yield file.finding(number, "tab")


def _check_cpp(file):
    for match in _BARE_NOLINT.finditer(file.text):
        yield file.finding(file.line_of(match.start()), "a NOLINT names its check and says why")
    if not _SNAKE.fullmatch(file.stem):
        yield file.finding(0, "file names are snake_case")
    if file.stem in _BLAND_NAMES:
        yield file.finding(0, f"`{file.stem}` says nothing: name the file after its one idea")
    if file.suffix != "h":
        for match in _NOT_INLINE.finditer(file.code):
            yield file.finding(file.line_of(match.start()),
                               f"write `namespace weir::inline v0::inline {match.group(1)}`")
        return
    if file.code.lstrip().startswith("#pragma once") is False:
        yield file.finding(1, "a header starts with #pragma once")
    if file.layer:
        yield from _check_namespace(file)


def _check_namespace(file):
    """One namespace per layer, so that two layers cannot define one entity differently."""
    layer = f"::inline {file.layer}" if file.layer in _INLINE_LAYERS else f"::{file.layer}"
    own = "weir::inline v0" + ("" if file.layer == "base" else layer)
    for match in _NAMESPACE.finditer(file.code):
        name = " ".join(match.group(1).split())
        if name != own and not name.startswith(own + "::"):
            yield file.finding(file.line_of(match.start()), f"write `namespace {own}`")
