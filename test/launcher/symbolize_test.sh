#!/bin/sh
# SPDX-License-Identifier: MIT
# Reports with names: functions, files and lines of a program's stack, of position-independent code and of other.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem

cat >"$work/crime.c" <<'C'
#include <stdlib.h>
static inline __attribute__((always_inline)) void inner(char *block) {
    free(block);
}
__attribute__((noinline)) void outer(char *block) {
    inner(block);
    inner(block); /* line 7 */
    __asm__ volatile("" : : "r"(block) : "memory");
}
int main(void) {
    outer(malloc(40)); /* line 11 */
    return 0;
}
C
for kind in -pie -no-pie; do
    "${CC:-cc}" -O2 -g $kind -fno-builtin "$work/crime.c" -o "$work/crime"
    HAKMEM_OPTIONS=backtrace:1 LD_PRELOAD=$HAKMEM_LIB "$work/crime" 2>"$work/report" || true
    expect 0 "$hakmem" symbolize "$work/report"
    says out "hakmem: double free: "
    says out "inner at $work/crime.c:3"
    says out "inlined into outer at $work/crime.c:7"
    says out "main at $work/crime.c:11"
    says out "hakmem symbolize FILE (in a clone ./hakmem)"
    # Nothing else is changed, whatever it is; standard input is the same.
    printf 'a\377b\nhakmem:     #0 0x1234 /no/such/file+0x12\n%s\nend' "$(cat "$work/report")" >"$work/more"
    "$hakmem" symbolize <"$work/more" >"$work/named"
    sed 's/^\(hakmem:     #[0-9]* [^ ]* [^ ]*\).*/\1/; /^hakmem:        inlined/d' "$work/named" >"$work/bare"
    cmp "$work/bare" "$work/more" || fail "$kind: lines were changed"
    grep -q 'main at .*crime.c:11' "$work/named" || fail "$kind: no names for standard input"
done

rm "$work/crime" # names are missing then, nothing else
expect 0 "$hakmem" symbolize "$work/report"
says out "/crime+0x"
grep -q "crime.c:" "$work/out" && fail "names of a file that is gone"

expect 1 "$hakmem" symbolize "$work/none"
says err "$work/none: No such file"
expect 2 "$hakmem" symbolize one two
says err "usage: ./hakmem symbolize"
expect 0 "$hakmem" symbolize --help
says out "usage: ./hakmem symbolize"
exit "$failed"
