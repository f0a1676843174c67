#!/bin/sh
# SPDX-License-Identifier: MIT
# The exported symbols are those of symbols.txt, and of MORE. Usage: symbols_test.sh NM LIBRARY GOLDEN [--update | MORE]
set -eu
nm=$1
library=$2
golden=$3
found=$(mktemp)
trap 'rm -f "$found"' EXIT
"$nm" -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort >"$found"
if [ "${4:-}" = --update ]; then
    cp "$found" "$golden"
    exit 0
fi
if ! cat "$golden" ${4:+"$4"} | LC_ALL=C sort | diff -u - "$found"; then
    echo "exported symbols changed: if meant so, update the golden file and say it in the changelog" >&2
    exit 1
fi
