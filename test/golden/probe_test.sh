#!/bin/sh
# SPDX-License-Identifier: MIT
# The fast-path check fails when one instruction is added. Usage: probe_test.sh LIBRARY PROBE CHECKER…
set -eu
library=$1
probe=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$@" --lib "$library" --golden "$work/golden.json" --update >"$work/plain"
"$@" --lib "$library" --golden "$work/golden.json"
if "$@" --lib "$probe" --golden "$work/golden.json" >"$work/probed" 2>"$work/errors"; then
    echo "FAIL: one more instruction was not noticed"
    exit 1
fi
cat "$work/errors"
before=$(sed -n 's/^malloc .*: \([0-9]*\) instructions.*/\1/p' "$work/plain")
after=$(sed -n 's/^malloc .*: \([0-9]*\) instructions.*/\1/p' "$work/probed")
if [ "$after" -ne $((before + 1)) ]; then
    echo "FAIL: malloc: $before instructions became $after"
    exit 1
fi
