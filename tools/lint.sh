#!/bin/sh
# Everything that judges the text without running it; every judge speaks before it ends.
set -u
cd "$(dirname "$0")/.." || exit 2
failed=

# judge NAME command…
judge() {
  name=$1
  shift
  printf '== %s\n' "$name" >&2
  "$@" || failed="$failed $name"
}

formatted() {
  find include internal src apps examples fuzz tests \( -name '*.cc' -o -name '*.h' \) \
    -exec clang-format-14 --dry-run -Werror {} +
}
shells() {
  # shellcheck disable=SC2046
  shellcheck dev .ci/run $(find tools tests bench packaging -name '*.sh' 2>/dev/null)
}
pythons() {
  # Compiled in memory only: nothing is left behind.
  find tools tests bench fuzz -name '*.py' 2>/dev/null | while IFS= read -r file; do
    python3 -c 'import sys; f = sys.argv[1]; compile(open(f).read(), f, "exec")' "$file" || exit 1
  done
}
clang_tidied() {
  mkdir -p build/lint
  cmake --preset lint >build/lint/configure.log 2>&1 || { cat build/lint/configure.log; return 1; }
  python3 tools/clang_tidy.py build/lint build/lint/clang-tidy-cache
}

judge clang-format formatted
judge shellcheck shells
judge python pythons
judge tidy python3 tools/tidy.py
judge clang-tidy clang_tidied

[ -z "$failed" ] || { echo "lint: findings by$failed"; exit 1; }
echo "lint: clean"
