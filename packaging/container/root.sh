#!/bin/sh
# root.sh PROGRAM FOLDER: the root file system of the image, in an empty folder: the program, the
# libraries that it loads, and nothing to run beside it.
set -eu
program=$1
root=$2
here=$(cd "$(dirname "$0")" && pwd)
[ -z "$(ls -A "$root" 2>/dev/null)" ] || { echo "root.sh: $root is not empty" >&2; exit 2; }
umask 022
mkdir -p "$root/usr/bin" "$root/etc/weir" "$root/etc/ssl/certs" "$root/run/weir" "$root/tmp" \
  "$root/dev" "$root/proc" "$root/sys"
chmod 1777 "$root/tmp"
install -m 755 "$program" "$root/usr/bin/weir"
strip --strip-unneeded "$root/usr/bin/weir"

# Each library at the path by which it is found; links are followed. getaddrinfo() loads none beyond
# these: since glibc 2.34, files and DNS are in libc itself.
{
  ldd "$program" | sed -nE 's/.* => (\/[^ ]+) .*/\1/p; s/^[[:space:]]*(\/[^ ]+) \(.*/\1/p'
} | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done

printf 'root:x:0:0:root:/:/nonexistent\n' >"$root/etc/passwd"
printf 'weir:x:65532:65532:weir:/:/nonexistent\n' >>"$root/etc/passwd"
printf 'root:x:0:\nweir:x:65532:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
# The container's engine puts /etc/resolv.conf and /etc/hosts there at run time.
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  # Where OpenSSL looks by default.
  mkdir -p "$root/usr/lib/ssl"
  ln -s /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
fi
# In a container, only addresses of the container can be reached from outside.
sed -e 's/"127.0.0.1:8080"/":8080"/' "$here/../weir.toml" >"$root/etc/weir/weir.toml"
