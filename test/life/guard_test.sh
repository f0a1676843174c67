#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Do real programs print the same when as many of their blocks are watched as there is room for, and
# are silent about it?
# usage: guard_test.sh    (HAKMEM_LIB is preloaded)
# shellcheck disable=SC2016 # programs in quotes
set -u
[ -n "${HAKMEM_LIB:-}" ] || { echo "skip: HAKMEM_LIB is not set"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# same NAME COMMAND...: with the library and without
same() {
    name=$1
    shift
    command -v "$1" >/dev/null || { echo "skip   $name: no $1"; return; }
    "$@" >"$work/plain" 2>&1
    env HAKMEM_OPTIONS=guard_rate:1 LD_PRELOAD="$HAKMEM_LIB" "$@" >"$work/watched" 2>&1
    status=$?
    if [ "$status" = 0 ] && cmp -s "$work/plain" "$work/watched"; then
        echo "ok     $name"
    else
        echo "FAILED $name: status $status"
        diff "$work/plain" "$work/watched" | head -20
        failures=$((failures + 1))
    fi
}

i=0
while [ "$i" -lt 5000 ]; do
    echo "$i $((i * 7919 % 5003))"
    i=$((i + 1))
done >"$work/numbers"

same sort sort -k2 -n "$work/numbers"
same sed sed 's/\([0-9]*\) \([0-9]*\)/\2 \1/' "$work/numbers"
same awk awk '{ sum[$2 % 97] += $1 } END { for (i = 0; i < 97; i++) print i, sum[i] }' "$work/numbers"
same perl perl -ne '@w = split; $h{$w[1]} .= "$w[0] "; END { print "$_ $h{$_}\n" for sort keys %h }' "$work/numbers"
same python3 python3 -c '
import json, re, subprocess, sys, threading
lines = [line.split() for line in open(sys.argv[1])]
table = {}
def work(part):
    for a, b in lines[part::4]:
        table[int(b) * 10 + part] = re.sub("[13]", "x", a) * (int(b) % 50)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(json.dumps(table, sort_keys=True)))
print(subprocess.run(["echo", "child"], capture_output=True).stdout)
' "$work/numbers"
same shell sh -c 'for i in 1 2 3; do (echo "$i"; echo "$i$i") | cat; done'

echo "$failures failures"
[ "$failures" = 0 ]
