#!/bin/sh
# package.sh OUT [PREBUILT]: the Debian package of this source, in OUT. It is built in a copy, so
# that nothing appears in the source; with PREBUILT, a finished build directory, nothing is
# compiled.
set -eu
out=$1
prebuilt=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
for tool in dpkg-buildpackage dh; do
  command -v $tool >/dev/null || { echo "package.sh: $tool is missing: ./dev setup" >&2; exit 2; }
done

# The copy stays where it is, so that ccache knows the files of the next build.
copy=$out/source
mkdir -p "$copy"
cd "$root"
if [ -e .git ]; then git ls-files --cached --others --exclude-standard
else find . -name build -prune -o -type f -print; fi |
  while read -r file; do [ ! -e "$file" ] || printf '%s\n' "$file"; done >"$out/files"
find "$copy" -mindepth 1 -maxdepth 1 ! -name 'obj-*' -exec rm -rf {} +
tar -cf - -T "$out/files" | tar -xf - -C "$copy"
cp -R packaging/debian "$copy/debian"

version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
changed=$(git log -1 --format=%ct 2>/dev/null) || changed=$(date -r CHANGELOG.md +%s)
cat >"$copy/debian/changelog" <<TXT
weir ($version-1) unstable; urgency=medium

  * What is new is in /usr/share/doc/weir/changelog.gz.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date -R -u -d "@$changed")
TXT

# Compressing the symbols takes longer than all the rest.
options="noautodbgsym parallel=${WEIR_JOBS:-$(getconf _NPROCESSORS_ONLN)}"
if [ -n "$prebuilt" ]; then
  WEIR_PREBUILT=$(cd "$prebuilt" && pwd)
  export WEIR_PREBUILT
else
  # debhelper has a home of its own.
  command -v ccache >/dev/null && CCACHE_DIR=$(ccache --get-config cache_dir) && export CCACHE_DIR
fi
rm -f "$out"/weir*.deb "$out"/weir_*.changes "$out"/weir_*.buildinfo
cd "$copy"
DEB_BUILD_OPTIONS=$options dpkg-buildpackage -b -us -uc -nc ${prebuilt:+-d}
ls "$out"/weir_*.deb
