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

# shellcheck source=test/limits/group.sh
. "$HAKMEM_SOURCE/test/limits/group.sh"

# confine LIST: children in a group with a limit of 64 MiB, of which 56 MiB are used
confine() {
    in_group "$work/self" 67108864 58720256 "$HAKMEM_LIB" "$lists" 4 "$1" >"$work/out" 2>&1
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
