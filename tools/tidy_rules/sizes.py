"""Sizes that may only shrink: files, and functions."""

import re

FILE_LINES = 600
TEST_LINES = 900
FUNCTION_LINES = 70
SLACK = 20  # A listed file this far below its number lowers it.

_TYPE_OR_SPACE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?"
                            r"(?:namespace|class|struct|enum|union|extern)\b", re.DOTALL)
_FLOW = re.compile(r"^\s*(?:}?\s*else\s+)?(?:if|for|while|switch|catch|do|else|try)\b")


def check(tree):
    for file in tree.files.values():
        if file.suffix not in ("cc", "h", "py", "sh") and file.name != "dev":
            continue
        yield from _check_file(tree, file)
        if file.is_cpp:
            for line, length, name in functions(file.code):
                if length > FUNCTION_LINES and tree.exceptions.get(
                        "functions", f"{file.path}:{name}") is None:
                    yield file.finding(line, f"`{name}` has {length} lines; {FUNCTION_LINES} is "
                                             "the limit: split it")


def _check_file(tree, file):
    limit = TEST_LINES if file.is_test else FILE_LINES
    size = len(file.lines)
    listed = tree.exceptions.get("sizes", file.path)
    if listed is None:
        if size > limit:
            yield file.finding(0, f"{size} lines; {limit} is the limit: split it by idea")
        return
    if size <= limit:
        yield file.finding(0, f"{size} lines fit the limit: remove its entry under [sizes]")
    elif size > listed["lines"]:
        yield file.finding(0, f"grew from {listed['lines']} to {size} lines; it may only shrink")
    elif size < listed["lines"] - SLACK:
        yield file.finding(0, f"shrank to {size} lines: lower its number under [sizes]")


def functions(code):
    """(line, lines, name) of each outermost function body. Relies on clang-format: a block's brace
    stands after a blank, an initialiser's directly after its name."""
    position, start, line = 0, 0, 1
    length = len(code)
    brace_or_end = re.compile(r"[{};\n#]")
    while match := brace_or_end.search(code, position):
        at, char = match.start(), match.group()
        position = at + 1
        if char == "\n":
            line += 1
        elif char == "#":
            position = _end_of_directive(code, at)
            line += code.count("\n", at, position)
            start = position
        elif char in ";}":
            # A semicolon inside parentheses (a for statement) is never at this level.
            start = position
        else:
            head = code[start:at]
            kind = _kind(code, at, head)
            if kind == "scope":
                start = position
                continue
            end = _matching_brace(code, at)
            lines = code.count("\n", at, end)
            if kind == "function":
                head_lines = head.strip().count("\n")
                yield line - head_lines, lines + head_lines + 1, _name(head)
                start = end
            line += lines
            position = min(end, length)


def _kind(code, at, head):
    before = code[at - 1] if at else " "
    if not before.isspace():
        return "initialiser"
    text = head.rstrip()
    if text.endswith(("=", "(", ",", "return", "?", ":")) or not text.strip():
        return "scope" if not text.strip() else "initialiser"
    if _TYPE_OR_SPACE.match(text) and not text.endswith(")"):
        return "scope"
    if _FLOW.match(text):
        return "scope"
    return "function" if ")" in text else "scope"


def _name(head):
    names = re.findall(r"(operator\s*[^\s\w(]+|operator\s*\(\)|~?\w+)\s*\(", head)
    text = re.search(r"\b(TEST(?:_F|_P)?)\s*\(\s*(\w+)\s*,\s*(\w+)", head)
    if text:
        return f"{text.group(2)}.{text.group(3)}"
    return names[0] if names else "?"


def _matching_brace(code, at):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(code)


def _end_of_directive(code, at):
    end = code.find("\n", at)
    while end > 0 and code[end - 1] == "\\":
        end = code.find("\n", end + 1)
    return len(code) if end < 0 else end
