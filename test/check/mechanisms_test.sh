#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_mechanisms.py refuses files without a price, and prices without evidence. Usage: mechanisms_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"

tree() { # a tree whose table has these words as evidence of its only row
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src/slab" "$work/tree/docs/experiments" "$work/tree/test/unit"
    printf '/* two lines */\nint a;\n\nint b;\n' >"$work/tree/src/slab/slab.c"
    touch "$work/tree/docs/experiments/0009-sorting.md" "$work/tree/test/unit/slab_test.c"
    row slab 'slab/*' "$1"
}
row() { # NAME FILES EVIDENCE
    printf '%s\t%s\ttime: 0.9\t%s\n' "$1" "$2" "$3" >>"$work/tree/docs/mechanisms.tsv"
}
check() {
    "$python" "$root/tools/check_mechanisms.py" --root "$work/tree" "$@" >"$work/out" 2>&1
}

tree '0009 test/unit/slab_test.c'
accepts
accepts --show
grep -q '^ *2 slab .*time: 0.9 (0009 test/unit/slab_test.c)$' "$work/out" || fail "lines of code"
printf 'int take(void) {\n    return a;\n}\n' >>"$work/tree/src/slab/slab.c"
row part 'slab/slab.c:take' 0009
accepts --show
for lines in '2 slab' '3 part'; do
    grep -q "^ *$lines " "$work/out" || fail "lines of $lines"
done
row parts 'slab/slab.c:take,gone' 0009
refuses 'parts: src/slab/slab.c has no function gone'
refuses 'take: in two rows, part and parts'
tree 0009
touch "$work/tree/src/slab.h"
refuses 'src/slab.h: in no row'
row again 'slab/slab.[ch]' 0009
refuses 'src/slab/slab.c: in two rows, slab and again'
row gone 'slab/gone.c' 0009
refuses 'gone: a pattern of slab/gone.c has no file'
tree 0010
refuses 'slab: 0010 does not exist'
tree test/unit/gone_test.c
refuses 'slab: test/unit/gone_test.c does not exist'
tree ''
refuses 'slab: nothing says what it brings, or what shows it'
exit $failed
