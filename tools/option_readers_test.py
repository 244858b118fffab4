#!/usr/bin/env python3
"""Every row of options.def has a reader: production code outside of the configuration that reads
the row's field.

The compiler is the judge, so that a field of the same name in another struct does not count: the
config structs are copied with each field marked [[deprecated]], sources are compiled against the
copies, and each warning is one use. Uses inside of validate() do not count, nor do assignments.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LAYERS = ("policy", "control", "http", "io", "server", "upstream", "gateway")
NOT_READERS = re.compile(r"_(test|bench|testing)\.\w+$")
ASSIGNED = re.compile(r"\w+\s*=[^=]")
VALIDATE = re.compile(r"^(inline )?ConfigErrors \w+::(validate|warnings)\(.*?^\}$", re.M | re.S)
ROW = re.compile(r'^WEIR_(UPSTREAM_|ROUTE_)?OPTION\(\s*(?:"[^"]*",\s*)?"[^"]*",\s*\w+,\s*([\w.]+)',
                 re.M)
OWNERS = {None: "Config", "UPSTREAM_": "UpstreamConfig", "ROUTE_": "RouteConfig"}
STRUCT = re.compile(r"^struct (?:alignas\(\d+\) )?(\w+)(?: : ([\w:, ]+))? \{$(.*?)^\};$",
                    re.M | re.S)
FIELD = re.compile(r"^  (?!return|using|static|friend|struct|enum|bool operator)"
                   r"((?:const )?[\w:]+(?:<[^;=(]*>)?) (\w+)(?= =|;|\{)", re.M)
WARNING = re.compile(r"^(.*?):(\d+):(\d+): warning: .*weir:([\w:]+)", re.M)


def fields_of(body):
    return {match.group(2): match.group(1) for match in FIELD.finditer(body)}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_under(folder, suffix):
    for path, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith(suffix):
                yield os.path.join(path, name)


class Tables:
    """The structs of the public headers, and the field that each row names."""

    def __init__(self):
        self.headers = {path: read(path) for path in files_under("include/weir", ".h")}
        self.structs = {}
        self.bases = {}
        for text in self.headers.values():
            for name, bases, body in STRUCT.findall(text):
                self.structs[name] = fields_of(body)
                self.bases[name] = [base.rpartition("::")[2] for base in bases.split(", ") if base]

    def leaf(self, owner, path):
        """("AdmissionConfig", "inflight_max") of Config's admission.inflight_max."""
        *inner, last = path.split(".")
        for name in inner:
            owner = self.structs[owner][name].rpartition("::")[2]
        owners = [one for one in (owner, *self.bases[owner]) if last in self.structs[one]]
        assert len(owners) == 1, (owner, path)
        return owners[0], last

    def rows(self):
        for owner, path in ROW.findall(read(os.path.join(ROOT, "src/config/options.def"))):
            yield path, self.leaf(OWNERS[owner or None], path)

    def write_marked(self, folder, leaves):
        """Copies of the headers that hold these fields, each marked."""
        wanted = {owner for owner, _ in leaves}

        def mark_struct(match):
            owner = match.group(1)
            if owner not in wanted:
                return match.group(0)

            def mark(field):
                if (owner, field.group(2)) not in leaves:
                    return field.group(0)
                return f'  [[deprecated("weir:{owner}::{field.group(2)}")]] {field.group(0)[2:]}'
            return FIELD.sub(mark, match.group(0))

        for path, text in self.headers.items():
            marked = STRUCT.sub(mark_struct, text)
            if marked == text:
                continue
            copy = os.path.join(folder, os.path.relpath(path, os.path.join(ROOT, "include")))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            with open(copy, "w", encoding="utf-8") as file:
                file.write(marked)


def private_folder(source):
    """The folder that a source's own headers are found from: src/<layer>, or apps/weir."""
    return os.path.join(ROOT, *os.path.relpath(source, ROOT).split(os.sep)[:2])


def uses_in(source, folder):
    """The fields that a source, and what it includes, reads."""
    compiler = shutil.which("clang++-14") or shutil.which("c++")
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-Wdeprecated-declarations",
         "-I", folder, "-I", f"{ROOT}/include", "-I", f"{ROOT}/internal",
         "-I", private_folder(source), source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{source}: {done.stderr[-2000:]}"
    return {tuple(name.split("::")) for path, line, column, name in WARNING.findall(done.stderr)
            if is_read(path, int(line) - 1, int(column) - 1)}


def is_read(path, line, column):
    text = read(path)
    lines = text.splitlines(keepends=True)
    at = sum(map(len, lines[:line])) + column
    inside = any(span.start() <= at < span.end() for span in VALIDATE.finditer(text))
    return not inside and "operator==" not in lines[line] and not ASSIGNED.match(text, at)


def words_of(path):
    """The words of a source and of the private headers that it includes."""
    text = read(path)
    for name in re.findall(r'^#include "((?!weir/)[^"]+)"$', text, re.M):
        for folder in (os.path.join(ROOT, "internal"), private_folder(path)):
            header = os.path.join(folder, name)
            text += read(header) if os.path.exists(header) else ""
    return set(re.findall(r"\w+", text))


def unread(tables, leaves, sources):
    """The fields that no source reads. Sources that name most of them are compiled first."""
    texts = {path: words_of(path) for path in sources}
    open_leaves = set(leaves)
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tables.write_marked(folder, leaves)
        while open_leaves:
            names = {name for _, name in open_leaves}
            ranked = sorted(texts, key=lambda path: (-len(names & texts[path]), path))
            batch = [path for path in ranked[:os.cpu_count()] if names & texts[path]]
            if not batch:
                break
            for found in pool.map(lambda path: uses_in(path, folder), batch):
                open_leaves -= found
            for path in batch:
                del texts[path]
    return open_leaves


class OptionReaders(unittest.TestCase):
    def test_every_row_has_a_reader(self):
        tables = Tables()
        rows = dict((leaf, path) for path, leaf in tables.rows())
        self.assertGreater(len(rows), 150)
        sources = [path for layer in (*(f"src/{name}" for name in LAYERS), "apps")
                   for path in files_under(layer, ".cc") if not NOT_READERS.search(path)]
        nobody = unread(tables, set(rows), sources)
        self.assertEqual(sorted(rows[leaf] for leaf in nobody), [],
                         "nothing reads these options: remove the rows or read them")


if __name__ == "__main__":
    sys.exit(unittest.main())
