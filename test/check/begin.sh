# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Sourced by the tests of the checkers: the interpreter, the tree, a folder that goes at the end, the result, and
# expectations of `check`, a function of the test, whose output is in $work/out.
python=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    cat "$work/out"
    failed=1
}
accepts() { # WORDS…: check takes them
    check "$@" || fail "refused: $*"
}
refuses() { # TEXT WORDS…: check takes them; its output has the text
    text=$1
    shift
    if check "$@"; then
        fail "accepted: $* ($text)"
    else
        grep -qF -e "$text" "$work/out" || fail "not refused for: $text"
    fi
}
