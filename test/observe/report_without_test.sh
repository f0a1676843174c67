#!/bin/sh
# SPDX-License-Identifier: MIT
# The library built with HAK_REPORT=0 serves a program, refuses the option `report` in one line, and has none of its code.
# Usage: report_without_test.sh LIBRARY NM PROGRAM
set -eu
library=$1
nm=$2
program=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
line='hakmem: report: not in this build (HAK_REPORT=0); option ignored'

# expect LINES OPTIONS: the program ends well under these options, forks included, and says just that.
expect() {
    for what in allocate fork; do
        HAKMEM_OPTIONS=$2 LD_PRELOAD=$library "$program" "$what" </dev/null >"$work/out" 2>"$work/errors"
        printf '%s' "$1" | diff - "$work/errors" || {
            echo "FAIL: options '$2', program '$what'"
            exit 1
        }
    done
}

expect '' ''
expect '' only:program,report_file:/nowhere/at/all
expect "$line
" report:exit
expect "$line
" "report:json,report_file:$work/report"
set -- "$work"/*
if [ $# -ne 2 ]; then
    echo "FAIL: a report was made: $*"
    exit 1
fi
if "$nm" "$library" | grep -e hak_observer -e hak_life_report; then
    echo "FAIL: it has code of the report"
    exit 1
fi
