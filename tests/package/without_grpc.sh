#!/bin/sh
# without_grpc.sh BUILD_DIR COMPILER: with -DWEIR_GRPC=OFF no command of the build compiles or links
# anything of gRPC. The build in BUILD_DIR, which has the layer, shows that this would be seen.
set -eu
build=$1
compiler=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# of_grpc DIR: the words of its commands that are of gRPC.
of_grpc() {
  ninja -C "$1" -t commands all | sed "s#$root##g" | tr ' ' '\n' |
    grep -E 'libgrpc|libprotobuf|-lgrpc|libweir_grpc|/src/grpc/' | sort -u || true
}

cmake -S "$root" -B "$scratch/off" -G Ninja -DWEIR_GRPC=OFF -DWEIR_TESTS=OFF \
  -DCMAKE_CXX_COMPILER="$compiler" >"$scratch/off.log" 2>&1 || { cat "$scratch/off.log"; exit 1; }
found=$(of_grpc "$scratch/off")
if [ -n "$found" ]; then
  echo "$found"
  echo "WEIR_GRPC=OFF still builds the above"
  exit 1
fi
if [ -e "$build/src/grpc/libweir_grpc.a" ] && [ -z "$(of_grpc "$build")" ]; then
  echo "the check does not see gRPC in $build"
  exit 1
fi
