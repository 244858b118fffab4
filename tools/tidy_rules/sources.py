"""Every source is built and tested."""

import re

_TOKEN = re.compile(r"[\w./+-]+\.cc\b")


def check(tree):
    listed = _listed_sources(tree)
    for file in tree.files.values():
        if file.suffix != "cc":
            continue
        if file.path not in listed and file.top != "cmake":
            if tree.exceptions.get("unlisted", file.path) is None:
                yield file.finding(0, "no CMakeLists.txt lists it: dead code")
        if file.top == "src" and not file.is_test and not file.is_bench:
            test = f"{file.folder}/{file.stem}_test.cc"
            if test not in tree.paths and tree.exceptions.get("untested", file.path) is None:
                yield file.finding(0, f"has no {file.stem}_test.cc beside it: write it, or say "
                                      "under [untested] what tests it")
    for path, (where, line) in sorted(listed.items()):
        if path not in tree.paths:
            yield where.finding(line, f"lists {path}, which does not exist")


def _listed_sources(tree):
    """path -> (CMakeLists.txt, line)"""
    listed = {}
    for file in tree.files.values():
        if file.name != "CMakeLists.txt":
            continue
        for number, line in enumerate(file.lines, 1):
            for name in _TOKEN.findall(line.partition("#")[0]):
                if "$" not in line or "}/" not in line:
                    path = _join(file.folder, name)
                    listed.setdefault(path, (file, number))
    return listed


def _join(folder, name):
    parts = folder.split("/") if folder else []
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
