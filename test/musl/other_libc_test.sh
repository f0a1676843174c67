#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One shared library under both C libraries: is it in use in programs of musl and of glibc, whichever it was built
# with, and do programs that it cannot serve run as without it?
# usage: other_libc_test.sh CC FOLDER    (HAKMEM_LIB is preloaded)
set -u
compiler=$1
folder=$2
source=$(dirname "$0")
lib=${HAKMEM_LIB:?}
failures=0
skipped=
mkdir -p "$folder" || exit 1

# expect WHAT TEXT ERRORS COMMAND…: it ends with 0, prints the text, and as many lines on standard error
expect() {
    what=$1
    text=$2
    errors=$3
    shift 3
    out=$(LD_PRELOAD=$lib "$@" 2>"$folder/errors")
    status=$?
    lines=$(wc -l <"$folder/errors")
    if [ "$status" -eq 0 ] && [ "$out" = "$text" ] && [ "$lines" -eq "$errors" ]; then
        echo "ok     $what"
    else
        echo "FAILED $what: status $status, said '$out', and $lines lines:"
        cat "$folder/errors"
        failures=$((failures + 1))
    fi
}

# build NAME COMPILER WORDS…: a program; false if that compiler is not there
build() {
    built=$folder/$1
    shift
    if ! command -v "$1" >/dev/null; then
        skipped="$skipped $1"
        return 1
    fi
    "$@" -O1 -o "$built" || {
        echo "FAILED to build $built"
        failures=$((failures + 1))
        return 1
    }
}

for libc_compiler in gcc musl-gcc; do
    build "$libc_compiler-program" "$libc_compiler" "$source/program.c" -pthread && {
        expect "program_of_${libc_compiler}_uses_it" hakmem 0 "$folder/$libc_compiler-program"
    }
    build "$libc_compiler-static" "$libc_compiler" -static "$source/program.c" -pthread && {
        expect "static_program_of_${libc_compiler}_runs_unharmed" 'own malloc' 0 "$folder/$libc_compiler-static"
    }
done
bare="-nostdlib -ffreestanding -fno-stack-protector"
# shellcheck disable=SC2086 # words
build no-libc-static "$compiler" -static $bare "$source/no_libc.c" &&
    expect static_program_of_no_libc_runs_unharmed alive 0 "$folder/no-libc-static"
# Dynamic, and needs nothing: the loader of glibc brings glibc for the library that is made for it.
# shellcheck disable=SC2086 # words
if [ "${HAKMEM_FLAVOUR:-}" != musl ] && build no-libc "$compiler" -pie -fPIE $bare "$source/no_libc.c"; then
    expect dynamic_program_of_no_libc_runs_unharmed alive 0 "$folder/no-libc"
fi
# The loader of the other architecture says itself that it passes over the library.
if command -v qemu-aarch64 >/dev/null &&
    build other-machine aarch64-linux-gnu-gcc "$source/program.c" -pthread; then
    expect program_of_another_architecture_runs_without_it 'own malloc' 1 \
        qemu-aarch64 -E LD_PRELOAD="$lib" -L /usr/aarch64-linux-gnu "$folder/other-machine"
fi
[ "$failures" -eq 0 ] || exit 1
[ -z "$skipped" ] || echo "not tried, as a compiler is not there:$skipped"
