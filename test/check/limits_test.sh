#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_limits.py refuses what is too large. Usage: limits_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"

fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src/slab" "$work/tree/src/base" "$work/tree/tools" "$work/tree/test"
    printf 'int hak_one(int a) {\n    return a;\n}\n' >"$work/tree/src/slab/slab.c"
}

lines() { # COUNT TEXT
    awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) print text }'
}

check() {
    "$python" "$root/tools/check_limits.py" --root "$work/tree" >"$work/out" 2>&1
}

fresh
accepts "the tree"

fresh
lines 451 "" >"$work/tree/src/slab/long.c"
refuses "src/slab/long.c: lines: 451, at most 450"
echo "src/slab/long.c lines a table" >"$work/tree/tools/limits.allow"
accepts "the tree"
echo "src/slab/long.c lines" >"$work/tree/tools/limits.allow"
refuses "no reason given"

fresh
{
    echo 'static void long_one(void) {'
    lines 59 '    ;'
    echo '}'
} >"$work/tree/src/slab/slab.c"
refuses "lines of long_one (line 1): 61, at most 60"

fresh
lines 201 '- **api** more' >"$work/tree/CHANGELOG.md"
refuses "CHANGELOG.md: lines: 201, at most 200"

fresh
echo 'int seven(int a, int (*b)(int, int), int c, int d, int e, int f, int g) { return a; }' \
    >"$work/tree/src/slab/slab.c"
refuses "parameters of seven (line 1): 7, at most 6"

fresh
echo 'void deep(void) { if (1) { if (2) { if (3) { if (4) { if (5) { } } } } } }' >"$work/tree/src/slab/slab.c"
refuses "nesting of deep (line 1): 5, at most 4"

fresh
printf 'void cut(void) {\n#if 1\n#endif\n}\n' >"$work/tree/src/slab/slab.c"
refuses "#if in cut (line 1): 1, at most 0"

fresh
echo 'const char *name = "HAKMEM_THIRD";' >"$work/tree/src/base/names.c"
refuses "HAKMEM_THIRD"

fresh
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do : >"$work/tree/src/slab/f$i.c"; done
refuses "src/slab: files: 17, at most 16"

exit $failed
