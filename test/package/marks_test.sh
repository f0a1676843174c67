#!/bin/sh
# SPDX-License-Identifier: MIT
# The marks for control-flow integrity survive: of functions written in assembly, and where objects are linked into one (ld -r). Of the
# Alpine package the syntax.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"

marks() { # COMPILER LINKER FLAG MARK...
    compiler=$1 linker=$2 flag=$3
    shift 3
    command -v "$compiler" >/dev/null || {
        echo "no $compiler: its marks are not looked at"
        return 0
    }
    for file in unity cold; do
        expect 0 "$compiler" "$flag" -c -O0 -std=gnu17 -D_GNU_SOURCE -I"$HAKMEM_SOURCE/src" -I"$HAKMEM_SOURCE/include" \
            -DHAK_AUDIT=0 -DHAK_FAULT=0 -DHAK_OVERRIDE=1 -DHAK_HARDEN=0 -DHAK_REPORT=1 -fPIC -ftls-model=initial-exec \
            "$HAKMEM_SOURCE/src/$file.c" -o "$work/$file.o"
    done
    expect 0 "$linker" -r -T "$HAKMEM_SOURCE/src/api/place.ld" "$work/unity.o" "$work/cold.o" -o "$work/placed.o"
    readelf -n "$work/placed.o" >"$work/out" 2>&1
    for mark; do says out "$mark"; done
}

case $(uname -m) in
x86_64) marks gcc ld -fcf-protection=full IBT SHSTK ;;
esac
marks aarch64-linux-gnu-gcc aarch64-linux-gnu-ld -mbranch-protection=standard BTI PAC
sh -n "$HAKMEM_SOURCE/packaging/alpine/APKBUILD" || fail "APKBUILD has bad syntax"
exit $failed
