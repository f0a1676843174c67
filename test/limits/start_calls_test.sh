#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How many system calls does a process more make that does nothing, because the library is preloaded?
# Where memory and CPU time are controllers of version 1, in a group without a limit, in one with a
# limit of memory; and none that opens a file of the kernel where it is loaded beside a second thread.
# usage: start_calls_test.sh PYTHON    (environment: HAKMEM_LIB)
set -u
python=$1
trace=$(mktemp -d) || exit 1
trap 'rm -rf "$trace"' EXIT
status=0

strace -f -o "$trace/calls" -e trace=none true 2>/dev/null || {
    echo "skip: strace is not installed, or may not trace here"
    exit 77
}
# shellcheck source=test/limits/group.sh
. "$HAKMEM_SOURCE/test/limits/group.sh"
under="strace -f -o $trace/calls"

# count SELF LIMIT [LIBRARY]: calls of `true` in a group that says so, from its start on
count() {
    printf '%b' "$1" >"$trace/self"
    in_group "$trace/self" "$2" 1000000 "${3:-}" true || exit 1
    sed '1,/execve("[^"]*\/true".*= 0$/d' "$trace/calls" | grep -c '('
}

# expect NAME MOST SELF LIMIT
expect() {
    plain=$(count "$3" "$4")
    ours=$(count "$3" "$4" "$HAKMEM_LIB")
    echo "$1: $((ours - plain)) calls more than $plain"
    if [ "$((ours - plain))" -gt "$2" ]; then
        echo "FAILED: $1: more than $2"
        cat "$trace/calls"
        status=1
    fi
}

# Ten are the dynamic linker's: an empty library costs it eight, and two segments of code two more
# (docs/experiments/0087-cold-code-apart.md). Four are the guard's: two signals, asked for and set.
# One more is the file that a limit of memory would be in.
expect "version 1" 24 '4:memory:/\n3:cpu,cpuacct:/\n0::/\n' max
expect "no limit" 32 '0::/\n' max
expect "limit of memory" 44 '0::/\n' 536870912

strace -f -o "$trace/calls" -e trace=openat "$python" -c '
import ctypes, sys, threading
end = threading.Event()
threading.Thread(target=end.wait).start()
ctypes.CDLL(sys.argv[1])
end.set()' "$HAKMEM_LIB" || status=1
if sed '1,/libhakmem/d' "$trace/calls" | grep -E 'hugepage|cgroup'; then
    echo "FAILED: loaded beside a thread it opens files"
    status=1
fi
exit $status
