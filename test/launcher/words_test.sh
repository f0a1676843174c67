#!/bin/sh
# SPDX-License-Identifier: MIT
# Words on the command line: help, and errors that name the valid ones.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem

expect 0 "$hakmem" help
for word in run lib build test clean help --profile --lib --quick --full; do
    says out "$word"
done
[ -s "$work/err" ] && fail "help writes to stderr"
expect 0 "$hakmem"
expect 0 "$hakmem" --help

expect 2 "$hakmem" frobnicate
says err "unknown command 'frobnicate'"
says err "build lib run test lab clean help"
[ -s "$work/out" ] && fail "an error writes to stdout"
expect 2 "$hakmem" build frobnicate
says err "release clang debug-audit hardened tsan ubsan aarch64"
expect 2 "$hakmem" build release hardened
expect 2 "$hakmem" lib please
expect 2 "$hakmem" run
says err "no program given"
expect 2 "$hakmem" run --
expect 2 "$hakmem" run --frobnicate -- true
says err "--profile P, --lib PATH"
expect 2 "$hakmem" run --profile
expect 2 "$hakmem" run --lib "$work/gone.so" -- true
says err "no library at: $work/gone.so"
expect 2 "$hakmem" test --frobnicate
says err "--quick, --full"
expect 2 "$hakmem" test one two
expect 2 "$hakmem" clean all
exit $failed
