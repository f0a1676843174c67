#!/bin/sh
# SPDX-License-Identifier: MIT
# All C and C++ of the tree is formatted as .clang-format says.
set -eu
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || {
    echo "skipped: clang-format is not installed"
    exit 77
}
find src include test bench lang tools observe tcmalloc -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' \) -print0 2>/dev/null |
    xargs -0 clang-format --dry-run -Werror
