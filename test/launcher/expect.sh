# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Sourced by the tests of this folder: a scratch folder and expectations.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# expect STATUS COMMAND…: runs it, output to $work/out and $work/err
expect() {
    wanted=$1
    shift
    status=0
    "$@" >"$work/out" 2>"$work/err" || status=$?
    if [ "$status" -ne "$wanted" ]; then
        fail "status $status instead of $wanted: $*"
        cat "$work/out" "$work/err"
    fi
}

# says FILE TEXT: $work/FILE contains TEXT
says() {
    grep -qF -e "$2" "$work/$1" || {
        fail "$1 does not say: $2"
        cat "$work/$1"
    }
}

# start COMMAND…: a shell, told by its command to run, that stays until `stop`; $pid is there once it runs
start() {
    [ -e "$work/ready" ] || mkfifo "$work/ready" "$work/end"
    # shellcheck disable=SC2016 # the inner shell expands it
    "$@" sh -c 'echo >"$1"; read -r _ <"$2"' sh "$work/ready" "$work/end" &
    pid=$!
    read -r _ <"$work/ready"
}
stop() {
    echo >"$work/end"
    wait "$pid" || :
}

# may_observe: whether the kernel lets a process read another that is not its child
may_observe() {
    [ "$(id -u)" = 0 ] || [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || {
        echo "not tried: kernel.yama.ptrace_scope lets only root read other processes"
        return 1
    }
}

# observes OBSERVER COMMAND…: it says of a program that COMMAND starts on hakmem why its memory is what it is
observes() {
    observer=$1
    shift
    may_observe || return 0
    start "$@"
    expect 0 "$observer" explain "$pid"
    says out ", process $pid (sh)"
    says out "RSS is"
    stop
}

# prints TEXT: standard output is exactly TEXT
prints() {
    [ "$(cat "$work/out")" = "$1" ] || {
        fail "standard output is not: $1"
        cat "$work/out"
    }
}
