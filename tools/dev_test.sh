#!/bin/sh
# What ./dev says and returns before it does any work.
set -u
dev=$(cd "$(dirname "$0")/.." && pwd)/dev
failures=0

# expect STATUS TEXT arguments…
expect() {
  status=$1
  text=$2
  shift 2
  out=$("$dev" "$@" 2>&1 </dev/null)
  got=$?
  if [ "$got" != "$status" ]; then
    echo "./dev $*: exit $got, expected $status"
    failures=$((failures + 1))
  fi
  case $out in
    *"$text"*) ;;
    *)
      echo "./dev $*: does not say '$text' but: $out"
      failures=$((failures + 1))
      ;;
  esac
}

for command in setup build run test bench package image coverage lint fmt clean; do
  expect 0 "  $command" help
done
expect 0 'usage: ./dev'
expect 0 'usage: ./dev' --help
expect 0 'usage: ./dev' -h
expect 2 "unknown command 'tset'" tset
expect 2 "unknown label 'unti'" test unti
expect 2 'one label' test unit asan
expect 2 "unknown preset 'relaese'" build relaese
expect 2 'fuzz coverage odr' build relaese
cd / || exit 1
expect 2 "unknown label 'unti'" test unti

[ "$failures" -eq 0 ] && echo ok
exit "$failures"
