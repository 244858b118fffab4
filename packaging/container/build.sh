#!/bin/sh
# build.sh PROGRAM OUT: the image of the gateway, OUT/weir.tar, without a network, a base image or
# container tools. Load it with `docker load -i`, `podman load -i` or `kind load image-archive`.
set -eu
program=$1
out=$2
here=$(cd "$(dirname "$0")" && pwd)
version=$("$program" --version | cut -d ' ' -f 2)
mkdir -p "$out"
root=$(mktemp -d "$out/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
sh "$here/root.sh" "$program" "$root"
python3 "$here/archive.py" "$root" "$version" "$out/weir.tar"
ls "$out/weir.tar"
