#!/usr/bin/env python3
"""Writes the files of the dashboard as a C++ table: embed.py OUTPUT FILE...

Equal files make equal output: sorted by name, compressed without a time."""

import gzip
import hashlib
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
LITERAL_BYTES = 80

HEAD = """#include "dashboard/asset.h"

#include "asset_table.h"

namespace weir::inline v0::dashboard {

std::span<const Asset> asset_table() noexcept {
"""


def literal(data):
    """Octal escapes have three digits at most, so the next character cannot join one."""
    lines = [data[i:i + LITERAL_BYTES] for i in range(0, len(data), LITERAL_BYTES)] or [b""]
    texts = ('"' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines)
    return f"std::string_view(\n{chr(10).join(texts)}, {len(data)})"


def entry(path):
    data = path.read_bytes()
    kind = TYPES.get(path.suffix)
    if kind is None:
        raise SystemExit(f"{path}: no content type for {path.suffix}; known: {' '.join(TYPES)}")
    tag = hashlib.sha256(data).hexdigest()[:16]
    return (f'{{"{path.name}", "{kind}", "{tag}",\n{literal(data)},\n'
            f"{literal(gzip.compress(data, 9, mtime=0))}}},\n")


def main(output, *names):
    files = sorted((pathlib.Path(name) for name in names), key=lambda path: path.name)
    entries = "".join(entry(path) for path in files)
    body = "return {};\n"
    if entries:
        body = f"static constexpr Asset kAssets[] = {{\n{entries}}};\nreturn kAssets;\n"
    text = HEAD + body + "}\n\n}  // namespace weir::inline v0::dashboard\n"
    pathlib.Path(output).write_text(text, encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
