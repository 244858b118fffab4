#!/usr/bin/python3
"""Draws docs/images/weir-top.svg: what `weir top` shows of an overloaded `weir demo`.

    python3 tools/top_screenshot.py [--fake] [--seconds 45] [FILE]

Starts the demo on free ports and overloads it with wrk; with --fake a played gateway stands in.
WEIR_BUILD names the build directory (build/release)."""

import argparse
import html
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/integration"))

from fake_live import FakeLive  # noqa: E402
from processes import WEIR  # noqa: E402
from terminal import Terminal  # noqa: E402

COLS, ROWS = 112, 34
CELL, LINE, FONT = 8.4, 17, 14
COLOURS = {"default": "#d8dee9", "red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341",
           "yellow": "#e3b341"}
BACK = "#161b22"
NO_BREAK = "\u00a0"


def runs(row):
    """(column, text, pyte character) of each piece of one look."""
    start, text, look = 0, "", None
    for column in range(COLS):
        char = row[column]
        this = (char.fg, char.bold, char.reverse)
        if this != look and text:
            yield start, text, look
            start, text = column, ""
        look = this
        text += char.data or " "
    yield start, text, look


def svg_of(screen):
    width, height = COLS * CELL + 24, ROWS * LINE + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
           f'width="{width:.0f}" height="{height}" role="img" '
           'aria-label="weir top: the verdict, the upstreams, charts and events of an overload">',
           f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>',
           f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{FONT}" '
           'text-rendering="geometricPrecision">']
    for number in range(ROWS):
        y = 12 + number * LINE
        for column, text, (colour, bold, reverse) in runs(screen.buffer[number]):
            if not text.strip() and not reverse:
                continue
            x = 12 + column * CELL
            fill = COLOURS.get(colour, COLOURS["default"])
            if reverse:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{len(text) * CELL:.1f}" '
                           f'height="{LINE}" fill="{fill}"/>')
                fill = BACK
            weight = ' font-weight="bold"' if bold else ""
            # Blanks at an end would be dropped, and several within become one.
            shown = html.escape(text.strip()).replace(" ", NO_BREAK)
            x += (len(text) - len(text.lstrip())) * CELL
            out.append(f'<text x="{x:.1f}" y="{y + 13}" fill="{fill}"{weight} '
                       f'textLength="{len(text.strip()) * CELL:.1f}" '
                       f'lengthAdjust="spacingAndGlyphs">{shown}</text>')
    return "\n".join([*out, "</g>", "</svg>", ""])


def take(admin, seconds):
    shown = Terminal(WEIR, "top", "--admin", admin, cols=COLS, rows=ROWS)
    try:
        time.sleep(seconds)
        return svg_of(shown.screen)
    finally:
        shown.type("q")
        shown.wait()
        shown.end()


def overloaded_demo(seconds):
    demo = subprocess.Popen([WEIR, "demo", "--port", "0", "--tls-port", "0", "--admin-port", "0"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    loads = []
    try:
        places = {}
        for line in demo.stdout:
            if match := re.match(r"(gateway|admin)\s+(http://\S+)", line):
                places[match[1]] = match[2]
            if len(places) == 2:
                break
        # A quarter of the time below the capacity, then far above it.
        calm = max(4, seconds // 4)
        loads.append(subprocess.Popen(["wrk", "-t1", "-c4", f"-d{seconds + 5}s",
                                       places["gateway"] + "/"], stdout=subprocess.DEVNULL))
        time.sleep(calm)
        loads.append(subprocess.Popen(["wrk", "-t1", "-c60", f"-d{seconds + 5}s",
                                       places["gateway"] + "/"], stdout=subprocess.DEVNULL))
        return take(places["admin"], seconds - calm)
    finally:
        for child in [*loads, demo]:
            child.terminate()
        for child in [*loads, demo]:
            child.wait(20)
        demo.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--fake", action="store_true")
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("file", nargs="?", default=str(ROOT / "docs/images/weir-top.svg"))
    given = parser.parse_args()
    if given.fake:
        fake = FakeLive()
        picture = take(f"127.0.0.1:{fake.port}", 2)
        fake.end()
    else:
        picture = overloaded_demo(given.seconds)
    path = pathlib.Path(given.file)
    path.parent.mkdir(exist_ok=True)
    path.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
