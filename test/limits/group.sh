# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: MIT
# Sourced: commands in a control group that is made of files, in a mount of their own.

# As root, or as root of a user namespace.
for own in "unshare -m" "unshare -rm"; do
    $own sh -c "mount -t tmpfs none /sys/fs/cgroup && mount --bind /dev/null /proc/\$\$/cgroup" 2>/dev/null && break
    own=
done
[ -n "$own" ] || {
    echo "skip: no namespace with a file system of its own is to be had here"
    exit 77
}

# in_group SELF LIMIT USED LIBRARY COMMAND...: SELF is the file that says in which group the process is; LIMIT, USED: bytes.
# $under: what all of it runs under.
in_group() {
    # shellcheck disable=SC2016,SC2086
    ${under-} $own sh -c '
        mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup || exit 1
        echo "$2" >memory.max
        echo max >memory.high
        echo "$3" >memory.current
        echo "anon $3" >memory.stat
        echo "max 100000" >cpu.max
        mount --bind "$1" "/proc/$$/cgroup" || exit 1
        LD_PRELOAD=$4
        export LD_PRELOAD
        shift 4
        exec "$@"' sh "$@"
}
