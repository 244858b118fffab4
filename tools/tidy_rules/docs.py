"""Documents say what is there: links resolve, ./dev commands exist, code shown is code compiled."""

import re

_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
_DEV = re.compile(r"(?<![\w/])\./dev ([a-z]+)")

# <!-- from examples/a.cc --> or <!-- from examples/a.cc [name] -->, then the code.
_SHOWN = re.compile(r"^<!-- from (\S+)(?: \[([^\]]+)\])? -->\n```\w*\n(.*?)^```$",
                    re.DOTALL | re.MULTILINE)


def check(tree):
    for file in tree.files.values():
        if file.suffix == "md":
            yield from _check_links(tree, file)
            yield from _check_shown(tree, file)
    yield from _check_dev(tree)
    yield from _check_front(tree)


def _check_links(tree, file):
    prose = _FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), file.text)
    prose = _CODE_SPAN.sub(lambda m: " " * len(m.group()), prose)
    for match in _LINK.finditer(prose):
        target = match.group(1)
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        line = file.line_of(match.start())
        path, _, anchor = target.partition("#")
        resolved = _resolve(file.folder, path) if path else file.path
        is_folder = any(p.startswith(resolved.rstrip("/") + "/") for p in tree.paths)
        if resolved not in tree.paths and not is_folder:
            yield file.finding(line, f"link to {target}: no such file")
        elif anchor and resolved in tree.files and resolved.endswith(".md"):
            if anchor not in _anchors(tree.files[resolved].text):
                yield file.finding(line, f"link to {target}: no such heading")


def _check_shown(tree, file):
    """A block that names its source is that source, or the part of it between `// [name]` and
    `// [end]`."""
    for match in _SHOWN.finditer(file.text):
        path, name, shown = match.groups()
        line = file.line_of(match.start())
        if path not in tree.files:
            yield file.finding(line, f"code from {path}: no such file")
            continue
        text = tree.files[path].text
        if name is not None:
            part = re.search(rf"^// \[{re.escape(name)}\]\n(.*?)^// \[end\]$", text,
                             re.DOTALL | re.MULTILINE)
            text = part.group(1) if part else None
        if text is None:
            yield file.finding(line, f"code from {path}: it has no part [{name}]")
        elif text != shown:
            yield file.finding(line, f"code from {path} differs from it: copy it again")


def _resolve(folder, path):
    parts = [] if path.startswith("/") else [p for p in folder.split("/") if p]
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _anchors(text):
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        unique = slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


def _check_dev(tree):
    dev = tree.files.get("dev")
    if dev is None:
        return
    commands = set(re.findall(r"^  ([a-z]+)\)", dev.text, re.MULTILINE)) | {"help"}
    for file in tree.files.values():
        if file.suffix != "md":
            continue
        for match in _DEV.finditer(file.text):
            if match.group(1) not in commands:
                yield file.finding(file.line_of(match.start()),
                                   f"`{match.group()}`: no such command")


def _check_front(tree):
    license_file = tree.files.get("LICENSE")
    if license_file is not None and "Apache License" not in license_file.text:
        yield license_file.finding(0, "is not the Apache License")
    readme = tree.files.get("README.md")
    if readme is not None:
        for command in ("./dev test", "./dev run"):
            if command not in readme.text:
                yield readme.finding(0, f"does not tell the reader `{command}`")
