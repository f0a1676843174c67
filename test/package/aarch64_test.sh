#!/bin/sh
# SPDX-License-Identifier: MIT
# Packages for aarch64, made on another machine: unpacked, and programs run on their libraries by the emulator.
# usage: aarch64_test.sh tarball|deb
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
needs aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64
[ "$(uname -m)" != aarch64 ] || skip "the other tests make these packages here"
aarch64-linux-gnu-gcc -O1 -o "$work/program" "$HAKMEM_SOURCE/test/musl/program.c" -pthread
expect 0 qemu-aarch64 -cpu neoverse-n1 -L /usr/aarch64-linux-gnu "$work/program"
prints "own malloc"
# Also by a processor with memory tags that refuses jumps to where no mark for them is. The tunable: see test/tag/CMakeLists.txt.
emulated() { # LIBRARY
    for processor in neoverse-n1 max,sve=off; do
        expect 0 qemu-aarch64 -cpu $processor -L /usr/aarch64-linux-gnu -E GLIBC_TUNABLES=glibc.cpu.name=kunpeng920 \
            -E LD_PRELOAD="$1" "$work/program"
        prints hakmem
    done
}

if [ "$1" = deb ]; then
    needs dpkg-buildpackage dh lintian
    debs aarch64
    lintian --no-tag-display-limit "$debs"/hakmem_*_arm64.changes >"$work/lintian" 2>/dev/null || fail "lintian fails"
    grep -E '^[EW]:' "$work/lintian" && fail "lintian has something to say"
    for name in libhakmem0 libhakmem-dev hakmem; do
        dpkg-deb -x "$debs/${name}"_*_arm64.deb "$work/tree" || fail "no package $name"
    done
    library=$work/tree/usr/lib/aarch64-linux-gnu
    for mark in BTI PAC; do
        readelf -n "$library/libhakmem.so.0" | grep -q "$mark" || fail "no mark $mark"
    done
    emulated "$library/libhakmem.so.0"
    emulated "$library/hakmem/hardened/libhakmem.so.0"
    dpkg-deb -f "$debs"/libhakmem0_*_arm64.deb Depends >"$work/out"
    says out "libc6 (>= "
    exit $failed
fi

expect 0 package tarball aarch64
tar -xzf "$(cat "$work/out")" -C "$work"
install=$(echo "$work"/hakmem-*-linux-aarch64/install.sh)
one_line 1 "these libraries are for aarch64" "$install" --prefix "$work/prefix"
mkdir "$work/bin"
printf '#!/bin/sh\necho aarch64\n' >"$work/bin/uname"
chmod +x "$work/bin/uname"
expect 0 env PATH="$work/bin:$PATH" "$install" --prefix "$work/prefix"
emulated "$work/prefix/lib/libhakmem.so"
emulated "$work/prefix/lib/hakmem/hardened/libhakmem.so.0"
expect 0 aarch64-linux-gnu-gcc -static -I"$work/prefix/include" "$HAKMEM_SOURCE/test/consumer/cc/main.c" \
    "$work/prefix/lib/libhakmem.a" -o "$work/static"
expect 0 qemu-aarch64 -cpu neoverse-n1 "$work/static"
says out "on hakmem"

for kind in wheel wheel-musl; do
    expect 0 package $kind aarch64
    wheel=$(cat "$work/out")
    platform=${wheel%.whl}
    platform=${platform##*-}
    case $kind-$platform in
    wheel-manylinux_2_*_aarch64 | wheel-musl-musllinux_1_2_aarch64) ;;
    *) fail "the tag of $wheel" ;;
    esac
    if python3 -m pip --version >/dev/null 2>&1; then
        expect 0 python3 -m pip --disable-pip-version-check install --no-index --no-deps --only-binary :all: \
            --platform "$platform" --target "$work/$kind" "$wheel"
    else
        expect 0 python3 -m zipfile -e "$wheel" "$work/$kind"
    fi
    emulated "$work/$kind/hakmem/_tree/lib/libhakmem.so.0"
done
exit $failed
