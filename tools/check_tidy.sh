#!/bin/sh
# SPDX-License-Identifier: MIT
# clang-tidy over the core, each file as a layer object. Usage: check_tidy.sh BUILD_FOLDER
set -eu
cd "$(dirname "$0")/.."
build=$1
command -v clang-tidy >/dev/null || {
    echo "skipped: clang-tidy is not installed"
    exit 77
}
# One file at a time: clang-tidy 14 takes va_start for missing in the second file of a run.
find src -mindepth 2 \( -name '*.c' -o -name '*.cpp' \) -print0 | LC_ALL=C sort -z |
    xargs -0 -n 1 -P 2 clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option \
            --extra-arg=-Wno-ignored-optimization-argument
