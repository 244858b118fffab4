#!/bin/sh
# Line coverage by unit and integration tests; fails below tools/coverage_thresholds.txt.
# The report for people: build/coverage/report/index.html
set -eu
cd "$(dirname "$0")/.."
jobs=${WEIR_JOBS:-$(getconf _NPROCESSORS_ONLN)}
out=build/coverage
mkdir -p "$out/report"

say() { printf '== %s\n' "$*" >&2; }

say "building coverage"
{ cmake --preset coverage && cmake --build "$out" -j "$jobs"; } >"$out/build.log" 2>&1 ||
  { tail -n 40 "$out/build.log" >&2; exit 1; }

say "testing"
find "$out" -name '*.gcda' -delete
ctest --test-dir "$out" -j "$jobs" -L 'unit|integration' -LE 'stress|soak' --output-on-failure \
  >"$out/ctest.log" 2>&1 ||
  { grep -vE 'Passed|^ +Start ' "$out/ctest.log" | tail -n 60 >&2; exit 1; }

say "counting"
gcovr --root . --object-directory "$out" -j "$jobs" --gcov-ignore-parse-errors \
  --filter 'include/' --filter 'internal/' --filter 'src/' --filter 'apps/' \
  --exclude '.*_(test|bench)\.cc' --exclude '.*_(test_support|testing)\..*' \
  --exclude-unreachable-branches --exclude-throw-branches \
  --json-summary "$out/summary.json" --html-details "$out/report/index.html" \
  >"$out/gcovr.log" 2>&1 || { tail -n 20 "$out/gcovr.log" >&2; exit 1; }
python3 tools/coverage_check.py "$out/summary.json" tools/coverage_thresholds.txt
