"""Every source is built and tested."""

import re

_TOKEN = re.compile(r"[\w./+-]+\.cc\b")
_FOLDER = re.compile(r"^\s*add_subdirectory\(([\w./-]+)", re.MULTILINE)
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
    yield from _check_folders(tree)
    for path, (where, line) in sorted(listed.items()):
        if path not in tree.paths:
            yield where.finding(line, f"lists {path}, which does not exist")


def _check_folders(tree):
    """A CMakeLists.txt that nobody adds builds and tests nothing; one with a project() of its own
    is built by somebody's test."""
    if "CMakeLists.txt" not in tree.files:
        return
    lists = [f for f in tree.files.values() if f.name == "CMakeLists.txt"]
    added = {_join(file.folder, name) for file in lists for name in _FOLDER.findall(file.text)}
    for file in lists:
        if file.folder and file.folder not in added and "project(" not in file.text:
            yield file.finding(0, "no add_subdirectory() reaches it: what it lists is dead")


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
