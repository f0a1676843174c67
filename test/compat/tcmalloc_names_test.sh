#!/bin/sh
# SPDX-License-Identifier: MIT
# Does libtcmalloc_minimal.so.4 export the names of tcmalloc_names.txt, and do these, with those of libhakmem.so, include all that
# programs can need of gperftools' own libraries, where they are installed? Usage: tcmalloc_names_test.sh NM LIBRARY HAKMEM
set -eu
nm=$1
library=$2
hakmem=$3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names() { "$nm" -D --defined-only "$@" | awk 'NF >= 3 && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u; }
names "$library" >"$work/ours"
diff "$here/tcmalloc_names.txt" "$work/ours" || {
    echo "FAIL: other names than in tcmalloc_names.txt"
    exit 1
}
names "$library" "$hakmem" >"$work/all"
failed=0
for theirs in /usr/lib/*/libtcmalloc_minimal.so.4 /usr/lib/*/libtcmalloc.so.4; do
    if [ -e "$theirs" ] && ! names "$theirs" | grep -q '^hak_'; then
        # docs/tcmalloc.md says why these are left out: what is inside of gperftools, the kernel's calls, the leak checker.
        names "$theirs" | LC_ALL=C comm -23 - "$work/all" | grep -vE '^_Z' |
            grep -vE '^(__libc_|__posix_memalign|__start_|__stop_|mmap|mmap64|mremap|munmap|sbrk|malloc_size|malloc_hook)' |
            grep -vE '^(MallocHook_InitAtFirst|RunningOnValgrind|TCMalloc|tcmalloc_sys_alloc|heap_leak_|ProfilingIsEnabled)' \
                >"$work/missing" || true
        [ ! -s "$work/missing" ] || {
            echo "FAIL: $theirs has names that are not here: $(tr '\n' ' ' <"$work/missing")"
            failed=1
        }
    fi
done
exit $failed
