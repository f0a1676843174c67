#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does the library need a symbol that musl lacks? Its loader would end the program.
# usage: symbols_test.sh NM LIBRARY
set -eu
musl=
for path in /lib/ld-musl-*.so.1; do
    [ ! -e "$path" ] || musl=$path
done
[ -n "$musl" ] || { echo "skip: musl's loader is not there (package musl)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -D --undefined-only "$2" | awk '$1 == "U" { sub(/@.*/, "", $2); print $2 }' | sort -u >"$folder/needed"
"$1" -D --defined-only "$musl" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u >"$folder/there"
[ "$(wc -l <"$folder/needed")" -ge 10 ] || { echo "FAILED: nm found nothing"; exit 1; }
lacking=$(comm -23 "$folder/needed" "$folder/there")
[ -z "$lacking" ] || { echo "FAILED: musl lacks: $lacking"; exit 1; }
echo "ok     every symbol that is needed is there: $(wc -l <"$folder/needed")"
