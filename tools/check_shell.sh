#!/bin/sh
# SPDX-License-Identifier: MIT
# All shell scripts of the tree pass shellcheck.
set -eu
cd "$(dirname "$0")/.."
command -v shellcheck >/dev/null || {
    echo "skipped: shellcheck is not installed"
    exit 77
}
{
    printf 'hakmem\0cmake/hakmem.in\0.ci/run\0'
    find tools test bench -type f -name '*.sh' -print0 2>/dev/null
} | xargs -0 shellcheck -x
