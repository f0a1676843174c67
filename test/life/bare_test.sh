#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does a program work, and a crime end in abort(), in surroundings in which something usual is missing?
#   pid_one    it is the first process of its PID name space, which signals without a handler do not end
#   no_proc    nothing is mounted on /proc and /sys
#   chroot     nothing but the program is there
#   closed     standard input, output and error are closed
# usage: bare_test.sh SURROUNDINGS PROGRAM STATIC_PROGRAM    (HAKMEM_LIB is preloaded)
set -u
surroundings=$1
program=$2
static=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

skip() {
    echo "skip: $1"
    exit 77
}

# inside COMMAND…: in these surroundings
inside() {
    case $surroundings in
    pid_one) unshare --map-root-user --pid --fork --kill-child "$@" ;;
    no_proc)
        # shellcheck disable=SC2016 # the inner shell's
        unshare --map-root-user --mount sh -c \
            'mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec "$@"' sh "$@"
        ;;
    chroot) unshare --map-root-user --root="${root:-$folder}" "$@" ;;
    closed) "$@" <&- >&- 2>&- ;;
    esac
}

is_wanted() { # STATUS WANTED
    case $2 in
    died) [ "$1" -gt 128 ] && [ "$1" != 137 ] ;;
    *) [ "$1" = "$2" ] ;;
    esac
}

expect() { # WANTED WHAT COMMAND…
    wanted=$1
    what=${surroundings}_$2
    shift 2
    inside "$@" 2>"$folder/err"
    status=$?
    if is_wanted $status "$wanted"; then
        echo "ok     $what"
    else
        echo "FAILED: $what: status $status, not $wanted"
        cat "$folder/err"
        failures=$((failures + 1))
    fi
}

preloaded() { # WANTED WHAT OPTIONS ARGS…
    wanted=$1
    what=$2
    options=$3
    shift 3
    expect "$wanted" "$what" env LD_PRELOAD="$HAKMEM_LIB" HAKMEM_OPTIONS="$options" "$program" "$@"
}

root=/ inside "$(command -v true)" 2>/dev/null || skip "such name spaces may not be made here"
cp "$static" "$folder/static" || exit 1
if [ "$surroundings" = chroot ]; then
    static=/static
else
    preloaded 0 program_works ''
    preloaded 0 program_with_scavenger_works scavenger:1
    preloaded 0 program_with_warnings_works bogus:1,bin_bytes:none,strict:0
    preloaded died crime_ends '' crime
    preloaded died strict_option_ends bogus:1,strict:1
fi
expect 0 static_program_works "$static"
expect died static_crime_ends "$static" crime
[ "$failures" = 0 ]
