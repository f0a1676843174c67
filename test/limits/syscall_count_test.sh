#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How many memory calls (mmap munmap madvise mprotect mremap brk) does the mixed load of 50 000
# operations cost? At most 10 more than a process that does nothing, and at most 10 in the whole
# process where it is linked fully statically.
# usage: syscall_count_test.sh preload|static PROGRAM    (preload: HAKMEM_LIB, if set, is preloaded)
set -u
kind=$1
program=$2
limit=10
calls=mmap,munmap,madvise,mprotect,mremap,brk

if ! command -v strace >/dev/null 2>&1; then
    echo "skip: strace is not installed"
    exit 77
fi
trace=$(mktemp) || exit 1
trap 'rm -f "$trace"' EXIT
strace -f -o "$trace" -e trace=none true 2>/dev/null || {
    echo "skip: strace may not trace here"
    exit 77
}

# count ARGS…: memory calls of one run
count() {
    preload=
    if [ "$kind" = preload ] && [ -n "${HAKMEM_LIB:-}" ]; then
        preload="-E LD_PRELOAD=$HAKMEM_LIB"
    fi
    # shellcheck disable=SC2086
    strace -f -o "$trace" -e "trace=$calls" $preload "$program" "$@" || {
        echo "FAILED: $program $* ended with status $?" >&2
        exit 1
    }
    grep -cE "(^|[0-9]+ +)(mmap|munmap|madvise|mprotect|mremap|brk)\(" "$trace"
}

loaded=$(count run) || exit 1
[ -n "${VERBOSE:-}" ] && cat "$trace"
idle=$(count idle) || exit 1
difference=$((loaded - idle))
echo "memory calls: whole process $loaded, idle process $idle, the load itself $difference"
status=0
if [ "$difference" -gt "$limit" ]; then
    echo "FAILED: the load costs $difference memory calls, more than $limit"
    status=1
fi
if [ "$kind" = static ] && [ "$loaded" -gt "$limit" ]; then
    echo "FAILED: the whole process makes $loaded memory calls, more than $limit"
    status=1
fi
exit $status
