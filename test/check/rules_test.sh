#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_rules.py refuses each breach of the rules it checks, and nothing else.
# Usage: rules_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"

elsewhere=$work/tree/test/unit/ELSEWHERE
tree() { # a tree without a breach
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src/base" "$work/tree/src/os" "$work/tree/test/crime" "$work/tree/test/unit" \
        "$work/tree/docs"
    cat >"$work/tree/src/base/check.h" <<'EOF'
/* Invariants:
 *   SPAN-1  Each unit is free, or in use. */
#define HAK_FATAL_KINDS(X) X(DOUBLE_FREE, "double free") X(INVARIANT, "broken")
EOF
    cat >"$work/tree/src/base/a.c" <<'EOF'
hak_store_release(&a, 1); /* pairs HEAD */
/* pairs HEAD */
x = hak_load_acquire(&a) + hak_load_relaxed(&b);
EOF
    echo '- **HEAD** is explained.' >"$work/tree/docs/remote-free.md"
    echo '/* SPAN-1 */' >"$work/tree/test/a_test.c"
    echo 'twice	hakmem: double free: ADDRESS	all' >"$work/tree/test/crime/expected.tsv"
    touch "$work/tree/src/os/file_linux.c" "$work/tree/src/unity.c" "$work/tree/test/unit/os_file_test.c"
    printf '# by tests of other names\nbase/a.c a_test.c\n' >"$elsewhere"
}

check() {
    "$python" "$root/tools/check_rules.py" --root "$work/tree" >"$work/out" 2>&1
}

tree
accepts "the tree"
tree
echo 'x = hak_cas_acquire(&a, &b, 1);' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c:4: names no pair'
tree
echo 'hak_store_release(&b, 1); /* pairs TAIL */' >>"$work/tree/src/base/a.c"
refuses 'pair TAIL: only the release side is there'
refuses 'pair TAIL: docs/remote-free.md does not explain it'
tree
echo '- **GONE-1** is explained.' >>"$work/tree/docs/remote-free.md"
refuses 'pair GONE-1: docs/remote-free.md explains it, but'
tree
echo '/* nothing */' >"$work/tree/test/a_test.c"
refuses 'src/base/check.h: no test cites SPAN-1'
tree
echo '/* SPAN-2 */' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c: SPAN-2 is stated nowhere'
tree
printf 'HAK_LOCKED_STATE int a; /* [lock SPAN] */\nstatic int b; /* [atomic] */\n' >>"$work/tree/src/base/a.c"
accepts "state under a lock that is not static"
tree
echo 'HAK_LARGE_STATE(4) static int a; /* [lock SPAN] */' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c:4: written under a lock'
tree
printf '/* [lock SPAN] */\nstatic int a = 1;\n' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c:5: written under a lock'
for text in '/* Of two lines.\n * [lock SPAN] */\nstatic int a = 1;' 'static int a[] = {\n    1}; /* [lock SPAN] */' \
    'static struct one {\n    int a; /* [lock SPAN] */\n    int b;\n} one;' '/* [lock SPAN] */\nHAK_COLD\nstatic int a;'; do
    tree
    printf '%b\n' "$text" >>"$work/tree/src/base/a.c"
    refuses 'written under a lock'
done
tree
echo 'errno = saved;' >>"$work/tree/src/base/a.c"
accepts "errno that is restored"
echo 'errno = ENOMEM;' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c: sets errno'
tree
echo 'errno = is_large ? ENOMEM : EINVAL;' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c: sets errno'
tree
echo 'x = __atomic_load_n(&a, __ATOMIC_ACQUIRE);' >>"$work/tree/src/base/a.c"
refuses 'src/base/a.c:4: an atomic operation that base/atomics.h does not name'
tree
printf '#define X_KINDS X(GONE, "double " \\\n    "gone")\n' >>"$work/tree/src/base/check.h"
refuses 'no crime ends in GONE: double gone'
tree
echo 'twice	hakmem: another line	all' >"$work/tree/test/crime/expected.tsv"
refuses 'no crime ends in DOUBLE_FREE'
tree
rm "$elsewhere"
refuses 'src/base/a.c: neither test/unit/base_a_test.c nor a row in test/unit/ELSEWHERE'
tree
rm "$work/tree/test/unit/os_file_test.c"
refuses 'src/os/file_linux.c: neither test/unit/os_file_test.c nor a row'
tree
touch "$work/tree/test/unit/base_a_test.c"
refuses 'ELSEWHERE: base/a.c needs no row, test/unit/base_a_test.c exists'
tree
echo 'base/gone.c a_test.c' >>"$elsewhere"
refuses 'ELSEWHERE: src/base/gone.c does not exist'
tree
echo 'base/a.c a_test.c' >>"$elsewhere"
refuses 'ELSEWHERE: base/a.c has two rows'
tree
echo 'base/a.c gone_test.c' >"$elsewhere"
refuses 'ELSEWHERE: test/gone_test.c does not exist'
tree
echo 'base/a.c # by luck' >"$elsewhere"
refuses 'ELSEWHERE: base/a.c names no test'
tree
git -C "$work/tree" init -q
git -C "$work/tree" -c user.name=a -c user.email=a@localhost commit -q --allow-empty \
    -m 'Say in a subject of more than seventy-two characters what one of them fits'
refuses 'its subject has'
exit $failed
