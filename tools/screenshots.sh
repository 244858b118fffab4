#!/bin/sh
# screenshots.sh BUILD_DIR FOLDER: draws the pictures that README and guides show, of the demo under
# overload: the dashboard in Chromium, weir top on a terminal. Takes about two minutes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
"$root/tests/dashboard/run.sh" "$build" screenshots.mjs "$build/weir" "$folder"
WEIR_BUILD=$build /usr/bin/python3 -B "$root/tools/top_screenshot.py" "$folder/weir-top.svg"
