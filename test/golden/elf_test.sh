#!/bin/sh
# SPDX-License-Identifier: MIT
# What the dynamic linker sees of the library: nothing needed but libc, little static TLS, resolved at
# load time, never unloaded, no executable stack. With `placed`, code that ordinary programs do not run is a
# segment of its own, and there is no DT_FINI behind all code. With `run`, a start runs nothing of that segment,
# RELRO is an OS page at most, and small variables with the table of sizes are two.
# Usage: elf_test.sh READELF LIBRARY [placed [run]]
set -eu
readelf=$1
library=$2
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

for needed in $("$readelf" -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $needed in
    libc.so.6 | ld-linux-*) ;;
    *) fail "needs $needed" ;;
    esac
done
tls=$("$readelf" -lW "$library" | awk '$1 == "TLS" { print $6 }')
[ "$((${tls:-0}))" -le 64 ] || fail "static TLS is $((tls)) bytes, at most 64"
flags=$("$readelf" -dW "$library" | grep -E 'FLAGS') || fail "no flags"
for flag in NOW NODELETE; do
    case $flags in
    *$flag*) ;;
    *) fail "not linked with -z $flag" ;;
    esac
done
"$readelf" -dW "$library" | grep -q TEXTREL && fail "relocations in text"
"$readelf" -lW "$library" | grep -q GNU_RELRO || fail "no RELRO"
"$readelf" -lW "$library" | awk '$1 == "GNU_STACK" { print $7 }' | grep -q E && fail "executable stack"
"$readelf" -dW "$library" | grep -q 'SONAME.*\[libhakmem\.so\.' || fail "no SONAME"
if [ "${3:-}" = placed ]; then
    # A start copies each OS page of it, and with it of the tables of pointers.
    relro=$("$readelf" -lW "$library" | awk '$1 == "GNU_RELRO" { print $6 }')
    [ "${4:-}" != run ] || [ "$((relro))" -le 4096 ] || fail "RELRO is $((relro)) bytes, more than an OS page"
    if [ "${4:-}" = run ]; then # 2112: HAK_PAGEMAP_TABLE_BYTES, which a start fills
        variables=$("$readelf" -lW "$library" | awk '$1 == "GNU_RELRO" { print $3, $6 }')
        table=$("$readelf" -sW "$library" | awk '$8 == "hak_pagemap" { print $2; exit }')
        bytes=$((0x$table + 2112 - ${variables% *} - ${variables#* }))
        [ "$bytes" -le 8192 ] || fail "small variables and the table of sizes are $bytes bytes, more than two OS pages"
    fi
    if [ "${4:-}" = run ]; then # cat shows its own mappings: of the second one of code it has run nothing so far
        # shellcheck disable=SC2002 # cat is the program that is looked at
        # (a rate that was chosen: without extra guarded blocks, which 1 process in 16 has)
        cold=$(HAKMEM_OPTIONS=guard_rate:131073 LD_PRELOAD=$library cat /proc/self/smaps |
            awk '$2 == "r-xp" { code = /libhakmem/; seen += code } $1 == "Rss:" && code { if (seen == 2) print $2; code = 0 }')
        [ "${cold:-none}" = 0 ] || fail "a start runs code of the second segment: ${cold:-none} KiB of it are resident"
    fi
    # A fault in code that ordinary programs run brings in nothing of the rest (src/api/segments.ld).
    code=$("$readelf" -lW "$library" | grep -cE '^ *LOAD .* R E ')
    [ "$code" -eq 2 ] || fail "$code segments of code, not two: one for what ordinary programs run"
    "$readelf" -dW "$library" | grep -q '(FINI)' && fail "a function at the end, behind all rare code"
fi
exit $failed
