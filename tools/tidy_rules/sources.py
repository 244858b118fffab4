"""Every source is built and tested."""

import re

_TOKEN = re.compile(r"[\w./+-]+\.cc\b")
_FUZZ = re.compile(r"^\s*weir_fuzz\((\w+)")  # builds <name>.cc


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
            line = line.partition("#")[0].replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
            names = _TOKEN.findall(line.replace("${PROJECT_SOURCE_DIR}", ""))
            names += [f"{name}.cc" for name in _FUZZ.findall(line)]
            for name in names:
                listed.setdefault(_join("" if name.startswith("/") else file.folder, name),
                                  (file, number))
    return listed


def _join(folder, name):
    parts = folder.split("/") if folder else []
    for part in name.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
