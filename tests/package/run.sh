#!/bin/sh
# run.sh BUILD_DIR COMPILER: see CMakeLists.txt. Everything happens in a scratch directory.
set -eu
build=$1
compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

step() { printf '== %s\n' "$*"; }
expect_ok() {
  out=$("$1")
  [ "$out" = ok ] || { echo "$1 printed '$out'"; exit 1; }
}

step "install"
cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"

# by_find_package NAME LINK [COMPONENTS …]
by_find_package() {
  name=$1
  link=$2
  shift 2
  step "find_package(weir $*), $link"
  {
    cmake -S "$here/consumer" -B "$scratch/$name" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_CXX_COMPILER="$compiler" -DWEIR_CONSUMER_LINK="$link" \
      -DWEIR_CONSUMER_EXAMPLE="$here/../../examples/in_your_server.cc" \
      -DWEIR_CONSUMER_COMPONENTS="$(echo "$*" | tr ' ' ';')" &&
      cmake --build "$scratch/$name"
  } >"$scratch/$name.log" 2>&1 || { cat "$scratch/$name.log"; exit 1; }
  expect_ok "$scratch/$name/consumer"
}
by_find_package all weir::weir
expect_ok "$scratch/all/loop"
expect_ok "$scratch/all/client"
by_find_package only_client weir::client COMPONENTS client
expect_ok "$scratch/only_client/client"
by_find_package some weir::control COMPONENTS control
by_find_package core weir::core COMPONENTS core
out=$("$scratch/core/in_your_server")
[ "$out" = served ] || { echo "README's program printed '$out' with weir::core"; exit 1; }
by_find_package server "weir::server;weir::core" COMPONENTS server core
by_find_package core_and_client weir::core COMPONENTS core client
expect_ok "$scratch/core_and_client/client"
by_find_package embed weir::embed COMPONENTS embed
if [ -n "$(find "$prefix" -name libweir_grpc.a)" ]; then
  by_find_package grpc weir::control COMPONENTS grpc
  expect_ok "$scratch/grpc/grpc"
fi
out=$("$scratch/embed/in_your_server")
[ "$out" = served ] || { echo "README's program printed '$out'"; exit 1; }

step "pkg-config --static weir"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name weir.pc)")
export PKG_CONFIG_PATH
for program in main loop client; do
  # The flags are words.
  # shellcheck disable=SC2046
  "$compiler" $(pkg-config --cflags weir) "$here/consumer/$program.cc" -o "$scratch/$program" \
    $(pkg-config --static --libs weir)
  expect_ok "$scratch/$program"
done

step "the components of cmake --install are apart"
cmake --install "$build" --prefix "$scratch/gateway" --component gateway >"$scratch/install.log"
cmake --install "$build" --prefix "$scratch/dev" --component dev >"$scratch/install.log"
there() { [ -e "$scratch/$1" ] || { echo "$1 is not installed"; exit 1; }; }
not_there() { [ ! -e "$scratch/$1" ] || { echo "$1 is installed"; exit 1; }; }
there gateway/bin/weir
there gateway/share/man/man1/weir.1
not_there gateway/include
there dev/include/weir
not_there dev/bin

step "a component that is not there is refused"
if cmake -S "$here/consumer" -B "$scratch/bad" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DWEIR_CONSUMER_COMPONENTS="COMPONENTS;nonsense" \
  >"$scratch/bad.log" 2>&1; then
  echo "find_package(weir COMPONENTS nonsense) succeeded"
  exit 1
fi
