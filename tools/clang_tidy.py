#!/usr/bin/env python3
"""clang-tidy over every source of a compilation database, only where something changed.

A source that passed is not looked at again until it, one of the project's headers it includes
(directly or not), its compile command or .clang-tidy changes.
usage: clang_tidy.py DATABASE_FOLDER CACHE_FOLDER [path prefix…]
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

CLANG_TIDY = "clang-tidy-14"
# Tests and benchmarks get these only; .clang-tidy says why.
TEST_CHECKS = ",".join((
    "-*", "bugprone-argument-comment", "bugprone-assert-side-effect", "bugprone-dangling-handle",
    "bugprone-fold-init-type", "bugprone-infinite-loop", "bugprone-integer-division",
    "bugprone-sizeof-*", "bugprone-suspicious-memset-usage", "bugprone-suspicious-semicolon",
    "bugprone-suspicious-string-compare", "bugprone-undelegated-constructor",
    "bugprone-unused-raii", "modernize-use-override", "readability-container-size-empty",
    "readability-duplicate-include", "readability-identifier-naming"))
_TEST_NAME = re.compile(r"_(?:test|bench)\.cc$")
ROOT = pathlib.Path(__file__).resolve().parent.parent
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning): ")


def own_folder(path):
    """src/<layer>: where the private headers of a layer are found from."""
    parts = path.resolve().relative_to(ROOT).parts
    return ROOT.joinpath(*parts[:2])


def headers_of(path, seen):
    """Adds to `seen` what `path` includes in quotes, looked up as the build does."""
    for name in _INCLUDE.findall(path.read_bytes()):
        for folder in (path.parent, ROOT / "include", ROOT / "internal", own_folder(path)):
            header = folder / name.decode()
            if header.is_file():
                header = header.resolve()
                if header not in seen:
                    seen.add(header)
                    headers_of(header, seen)
                break


def key_of(entry, common):
    source = pathlib.Path(entry["file"])
    seen = {source}
    headers_of(source, seen)
    digest = hashlib.sha256(common)
    digest.update(entry["command"].encode())
    for path in sorted(seen):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(entry, database):
    checks = [f"--checks={TEST_CHECKS}"] if _TEST_NAME.search(entry["file"]) else []
    result = subprocess.run([CLANG_TIDY, "-p", database, "--quiet", *checks, entry["file"]],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def entries_of(database, prefixes):
    for entry in json.loads(pathlib.Path(database, "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.is_relative_to(ROOT / "build"):
            continue
        if not prefixes or source.relative_to(ROOT).as_posix().startswith(tuple(prefixes)):
            yield entry


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    database, cache, *prefixes = arguments
    os.nice(10)
    cache = pathlib.Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes() + TEST_CHECKS.encode()
    todo = []
    for entry in entries_of(database, prefixes):
        key = key_of(entry, common)
        if not (cache / key).exists():
            todo.append((entry, key))
    jobs = int(os.environ.get("WEIR_JOBS", os.cpu_count() or 1))
    bad, blocks = 0, set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run, entry, database): (entry, key) for entry, key in todo}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            entry, key = futures[future]
            status, text = future.result()
            if status == 0:
                (cache / key).touch()
            else:
                bad += 1
                report(text, blocks)
            if done % 10 == 0:
                print(f"  {done}/{len(todo)}", file=sys.stderr, flush=True)
    print(f"clang-tidy: {len(todo)} sources looked at, {bad} with findings")
    return 1 if bad else 0


def report(text, blocks):
    """Prints each finding once, although many sources include the header it is in."""
    block = []
    for line in [*text.splitlines(), None]:
        if line is None or _FINDING.match(line):
            finding = "\n".join(block)
            if block and finding not in blocks:
                blocks.add(finding)
                print(finding.replace(f"{ROOT}/", ""))
            block = []
        if line is not None:
            block.append(line)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
