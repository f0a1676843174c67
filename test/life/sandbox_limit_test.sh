#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Children of a process whose control group has a limit of memory, nearly reached, confine themselves: its files, which
# are read whenever a part of the limit was taken, need the calls that docs/worst-cases.md#sandboxes names, and no others.
# usage: sandbox_limit_test.sh LISTS    (the program of sandbox_lists_test.c; environment: HAKMEM_LIB)
set -u
lists=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
printf '0::/\n' >"$work/self"

# As root, or as root of a user namespace.
for own in "unshare -m" "unshare -rm"; do
    $own sh -c "mount -t tmpfs none /sys/fs/cgroup && mount --bind /dev/null /proc/\$\$/cgroup" 2>/dev/null && break
    own=
done
[ -n "$own" ] || {
    echo "skip: no namespace with a file system of its own is to be had here"
    exit 77
}

# confine LIST: children in a group with a limit of 64 MiB, of which 56 MiB are used
confine() {
    # shellcheck disable=SC2016,SC2086
    LISTS=$lists LIST=$1 SELF=$work/self $own sh -c '
        mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup || exit 1
        echo 67108864 >memory.max
        echo max >memory.high
        echo 58720256 >memory.current
        echo "anon 58720256" >memory.stat
        echo "max 100000" >cpu.max
        mount --bind "$SELF" "/proc/$$/cgroup" || exit 1
        LD_PRELOAD=$HAKMEM_LIB
        export LD_PRELOAD
        exec "$LISTS" 4 "$LIST"' >"$work/out" 2>&1
}

confine page
result=$?
cat "$work/out"
[ $result -eq 0 ] || exit $result
confine rule
[ $? -eq 1 ] || {
    echo "FAILED: children read no file of their group"
    exit 1
}
for list in service renderer; do
    confine $list || {
        cat "$work/out"
        exit 1
    }
done
