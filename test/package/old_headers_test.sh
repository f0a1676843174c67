#!/bin/sh
# SPDX-License-Identifier: MIT
# The core, the observer and the operators compile against the headers of glibc 2.17, 2.28 and 2.34, as systems of 2013, 2018
# and 2021 have them, and link with what those versions export. The headers and the compiler are zig's, from the Python
# package index, kept below build/package/zig.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
needs python3
kept=$(dirname "$HAKMEM_BUILD")/package/zig
mkdir -p "$kept"
(
    flock 7
    if ! "$kept/venv/bin/python" -m ziglang version >/dev/null 2>&1; then
        rm -rf "$kept/venv"
        { python3 -m venv "$kept/venv" && "$kept/venv/bin/pip" install -q 'ziglang==0.13.*'; } >"$kept/log" 2>&1 || exit 1
    fi
) 7>"$kept/.lock" || skip "zig cannot be installed: $(tail -n 1 "$kept/log")"
export ZIG_GLOBAL_CACHE_DIR="$kept/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
cd "$HAKMEM_SOURCE"

# old LANGUAGE VERSION WORDS…: zig's compiler, cc or c++, for that glibc
old() {
    language=$1 version=$2
    shift 2
    "$kept/venv/bin/python" -m ziglang "$language" -target "$(uname -m)-linux-gnu.$version" -O2 -fPIC -fno-sanitize=all -Isrc -Iinclude \
        -Wall -Wextra -Werror -Wno-unused-command-line-argument -D_GNU_SOURCE=1 -DHAK_AUDIT=0 -DHAK_OVERRIDE=1 -DHAK_FAULT=0 \
        -DHAK_SHARED=1 "$@"
}

for version in 2.17 2.28 2.34; do
    for harden in 0 1; do
        for file in src/*.c; do
            old cc "$version" -std=gnu17 -DHAK_HARDEN=$harden -c "$file" -o "$work/$version-$harden-${file##*/}.o" ||
                fail "glibc $version, harden $harden: $file"
        done
    done
    old c++ "$version" -std=c++17 -DHAK_HARDEN=0 -c src/api/entry_cxx.cpp -o "$work/$version-0-operators.o" ||
        fail "glibc $version: the operators"
    for file in observe/*.c; do
        old cc "$version" -std=gnu17 -DHAK_HARDEN=0 -Iobserve -c "$file" -o "$work/observe.o" || fail "glibc $version: $file"
    done
done
# 2.17 exports all that the core takes: nothing is left undefined.
old cc 2.17 -shared -Wl,-z,defs "$work"/2.17-0-*.o -lpthread -ldl -o "$work/lib.so" || fail "glibc 2.17: linking"
echo "compiled against glibc 2.17, 2.28 and 2.34, linked with 2.17"
