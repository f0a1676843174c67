#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/proportion.py counts what a small source has. Usage: proportion_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"

mkdir -p "$work/src/base" "$work/src/stat"
cat >"$work/src/a.c" <<'CODE'
/* hak_fatal(hidden_in_a_comment) */
static void unused(void) {
}
__attribute__((noinline)) static inline
int step(int n) HAK_COLD {
    return n == 0 ? 0 : step(n - 1);
}
void *hak_malloc(size_t size) {
    return size == 0 ? hak_fatal(size) : take(step(size));
}
static void hold(void *block) {
}
static void kept(void) {
}
void hak_free(void *block) {
    bool kept = false, gone = kept;
    hooks.hold(block);
    hooks->hold(block);
    check(block);
    step(1);
    give(gone, block);
}
CODE
cat >"$work/src/b.c" <<'CODE'
void *take(int n) {
    return (void *)n;
}
void check(const void *address) {
    look_at(address);
}
void look_at(const void *address) {
}
void hak_fatal(int kind) {
    unused();
}
CODE
cat >"$work/src/c.c" <<'CODE'
void give(int n, void *freed) {
    look_at(freed);
    count(n);
}
static void count(int n) {
}
static void gone(void *block) {
}
CODE
printf 'struct hooks {\n    void (*one)(void);\n    int (*const two[2])(int n);\n} hooks;\n' >"$work/src/hooks.h"
printf 'several a.h b.h # two\nseveral c.h\n' >"$work/src/LAYERS"
printf '    X(one, "text")\n' >"$work/src/base/counters.h"
printf '    X(two, "text")\n    X(three, "text")\n' >"$work/src/stat/stat.h"
printf 'HAK_OPTION(only, BOOL)\n' >"$work/src/base/options.def"

"$python" "$root/tools/proportion.py" --root "$work" >"$work/out"
expect() {
    grep -Eq "^$1 +$2 " "$work/out" || fail "$1: not $2"
}
expect "reach of malloc and free, functions" 8 # hak_malloc, step, take; hak_free, check, look_at, give, count:
# no variable, no field, and no static function of another file
expect "reach of malloc and free, files" 3
expect "free's way, stations" 5 # a, b and back, c and back
expect "free's way, rooms" 3
expect "tables of function pointers" 1
expect "function pointers in them" 2
expect "headers of several files \\(LAYERS\\)" 3
expect "options" 1
expect "figures, counters included" 3
exit $failed
