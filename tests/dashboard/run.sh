#!/bin/sh
# run.sh BUILD_DIR SCRIPT [arguments]: installs what the tests need from npm (once for each lock
# file), then runs the script with node and Chromium. Nothing is skipped: what is missing fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
modules=$(cd "$1" && pwd)/dashboard-tests
script=$2
shift 2

fail() { printf 'dashboard tests: %s\n' "$*" >&2; exit 1; }
for tool in node npm flock; do
  command -v $tool >/dev/null || fail "$tool is missing: ./dev setup installs it"
done
[ -x "${WEIR_CHROMIUM:-/usr/bin/chromium}" ] || fail "chromium is missing: ./dev setup installs it"

install_packages() {
  cmp -s "$here/package-lock.json" "$modules/installed" && return 0
  cp "$here/package.json" "$here/package-lock.json" "$modules/"
  (cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
    fail "npm could not install axe-core and playwright-core: is its registry reachable?"
  cp "$here/package-lock.json" "$modules/installed"
}
mkdir -p "$modules"
exec 9>"$modules/lock"
flock 9
install_packages
flock -u 9
exec 9>&-

WEIR_NODE_MODULES=$modules exec node "$here/$script" "$@"
