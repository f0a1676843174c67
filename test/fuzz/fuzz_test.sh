#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does a target survive its corpus, and SECONDS of inputs made from it? An input it does not survive stays in
# the current folder; what is new in coverage is kept in KEPT, and begun with the next time.
# usage: fuzz_test.sh PROGRAM CORPUS SECONDS [KEPT]    (PROGRAM "none": there is no libFuzzer)
set -u
program=$1
corpus=$2
seconds=$3
if [ ! -x "$program" ]; then
    echo "skip: this clang has no libFuzzer (Debian: libclang-rt-*-dev, libstdc++-*-dev)"
    exit 77
fi
kept=${4:-}
seed=0 # a new one
if [ -z "$kept" ]; then
    seed=1 # a test without memory that fails once fails again
    kept=$(mktemp -d) || exit 1
    trap 'rm -rf "$kept"' EXIT
fi
mkdir -p "$kept" || exit 1
name=$(basename "$program")
case $name in
fuzz_api | fuzz_remote) length=2500 ;; # about 500 operations
*) length=12000 ;;                     # more than is read of any file
esac

# The memory limit is libFuzzer's idea of a leak; the time limit of an input is one of a hang.
"$program" -seed=$seed -artifact_prefix="$name-" -max_total_time="$seconds" -max_len=$length -len_control=0 -timeout=60 -rss_limit_mb=1500 \
    -print_final_stats=1 -close_fd_mask=2 "$kept" "$corpus" >"$name.log" 2>&1
status=$?
grep -E 'Seed:|DONE|^stat::number_of_executed_units' "$name.log"
if [ "$status" != 0 ]; then
    tail -n 60 "$name.log"
    echo "FAILED with status $status: give the file named above to $program"
    exit 1
fi
