#!/bin/sh
# SPDX-License-Identifier: MIT
# The tarball, or what the Alpine package is made of, in a fresh root of musl and busybox, which has no Python, no systemd and no
# network: installed, used, looked into at the end of a program, removed without a trace.
# usage: musl_test.sh tarball|apk
set -eu
# shellcheck source=test/package/roots.sh
. "$HAKMEM_SOURCE/test/package/roots.sh"
needs_root_and musl-gcc busybox
# Whatever it is called: that of another machine's package would not do.
LC_ALL=C ldd "$(command -v busybox)" 2>&1 | grep -q 'not a dynamic' || skip "busybox is not static: install busybox-static"
libc=/lib/ld-musl-$(uname -m).so.1
[ -f "$libc" ] || skip "no shared library of musl"

mkdir -p "$root/bin" "$root/lib" "$root/tmp" "$root/etc" "$root/root" "$root/usr/bin" "$root/dev"
: >"$root/dev/null"
cp "$(command -v busybox)" "$root/bin/busybox"
chroot "$root" /bin/busybox --install -s /bin
cp -L "$libc" "$root/lib/"
musl-gcc -O1 -o "$root/bin/program" "$HAKMEM_SOURCE/test/musl/program.c" -pthread
why=
borrow_python || why="no root of Debian 12, so no Python here: $(tail -n 1 "$kept/debootstrap-bookworm.log")"
enter
expect 0 inside program
prints "own malloc"

if [ "$1" = tarball ]; then
    expect 0 package tarball
    cp "$(cat "$work/out")" "$root/packages/"
    expect 0 inside sh -c 'cd /packages && tar xzf hakmem-*.tar.gz && hakmem-*/install.sh && hakmem run -- program'
    tail -n 1 "$work/out" | grep -qx hakmem || fail "not on hakmem: $(cat "$work/out")"
    expect 0 inside hakmem run --profile hardened -- program
    prints hakmem
else
    # As abuild does, with musl's compiler for the system's: checks the sum, unpacks, builds, packs.
    expect 0 package apk
    cat >"$work/abuild" <<'SHELL'
set -eu
cd "$1"
. ./APKBUILD
echo "$sha512sums" | grep . | sha512sum -c --quiet -
tar -xzf "$source" -C "$2"
cd "$2/$pkgname-$pkgver"
pkgdir=$3 CMAKE_TOOLCHAIN_FILE=$PWD/cmake/musl.cmake
export CMAKE_TOOLCHAIN_FILE
build
package
SHELL
    expect 0 sh "$work/abuild" "$work/package/alpine" "$work" "$work/tree"
    (cd "$work/tree" && find . ! -type d) >"$work/files"
    (cd "$work/tree" && tar cf - .) | (cd "$root" && tar xf -)
    expect 0 inside hakmem run -- program
    prints hakmem
fi
expect 0 inside hakmem run --report explain -- program
says err "RSS is"
for word in explain top stats options check enable; do one_line 2 "$word needs python3" inside hakmem $word 1; done
# shellcheck disable=SC2016 # the inner shell expands it
expect 0 inside sh -c 'hakmem run -- program 60 &
    for i in $(seq 200); do hakmem-observe explain $! >/dev/null 2>&1 && break; sleep 0.1; done
    hakmem-observe explain $!; status=$?; kill $!; exit $status'
says out "RSS is"
expect 0 inside hakmem run -- busybox true # static: unharmed
if [ -z "$why" ]; then
    ln -s /opt/python/python3 "$root/bin/python3"
    looks_inside program 60
    expect 0 inside hakmem options
    rm "$root/bin/python3"
else
    echo "explain and top are not tried: $why"
fi
if [ "$1" = tarball ]; then
    # shellcheck disable=SC2016 # the inner shell expands it
    expect 0 inside sh -c '"$(echo /packages/hakmem-*/install.sh)" --uninstall'
    nothing_left
fi
exit $failed
