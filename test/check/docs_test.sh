#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_docs.py refuses names of what does not exist, and fatal texts that no page explains. Usage: docs_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"
mkdir -p "$work/src/slab" "$work/docs"
: >"$work/CMakeLists.txt"
echo 'void hak_slab_take(void);' >"$work/src/slab/slab.h"

check_page() { # TEXT
    printf '%s\n' "$1" >"$work/docs/page.md"
    "$python" "$root/tools/check_docs.py" --root "$work" >"$work/out" 2>&1
}

check() {
    check_page "$1"
}

# The backquotes below are those of the documents.
# shellcheck disable=SC2016
for good in 'See `src/slab/slab.h` and `slab/slab.h`.' 'See `hak_slab_take` and `hak_slab_*`.' \
    '`src/{slab}/slab.h`, [the header](../src/slab/slab.h)' 'Run `cmake --preset x` or `a/b`.' \
    '`slab/` and `docs/`, in `build/gone/`' '## The `slab`, twice!
## The slab twice
[one](#the-slab-twice), [two](page.md#the-slab-twice-1)' '[one](<../src/slab/slab.h> "the header")' \
    'As `git log -- src/gone.h` has it' '[one]: not a link, but words' '[one]: ../src/slab/slab.h'; do
    accepts "$good"
done
# shellcheck disable=SC2016
for bad in 'See `src/slab/gone.h`.' 'See `slab/gone.h`.' 'See `gone.h`.' 'Calls hak_slab_gone().' \
    '[gone](../src/gone.h)' '`hak_gone_*`' '`gone/`' '[gone](#gone)' '[gone](page.md#gone)' \
    'Of `two words on
two lines` and `src/gone.h`.' '[gone](<../src/gone.h>)' '[gone](../src/gone.h "title")' '[gone]: ../src/gone.h' \
    '<img src="gone.svg">' 'Run `python3 tools/gone.py --now`.' '`slab/gone.h:12-20`' 'With HAK_GONE.' '`gone.ld`' '~~~
# Gone
~~~
[gone](#gone)'; do
    refuses '' "$bad"
done
echo 'No more hak_slab_gone().' >"$work/CHANGELOG.md"
accepts 'None.'
echo '[gone](docs/gone.md)' >"$work/CHANGELOG.md"
refuses 'CHANGELOG.md: link' 'None.'
rm "$work/CHANGELOG.md"
printf '# Decisions\n\n[one?](#one)\n\n## One\n' >"$work/docs/decisions.md"
accepts 'None.'
printf '\n## Two\n' >>"$work/docs/decisions.md"
refuses 'its table lacks #two' 'None.'
rm "$work/docs/decisions.md"

mkdir -p "$work/src/base"
printf '#define HAK_FATAL_KINDS(X) \\\n    X(A, "text of a") \\\n    X(B, "text")\n\n' >"$work/src/base/check.h"
check() { # ROWS of the table of docs/security.md
    printf '| Kind | Text | What |\n%b\n' "$1" >"$work/docs/security.md"
    check_page 'None.'
}
for good in '| A | text of a | x |\n| B | text | x |' '| A, B | text of a; text | x |'; do
    accepts "$good"
done
for bad in '| A | text of a | x |' '| A | text | x |\n| B | text | x |' '| A | text of a | text |\n| B | x |'; do
    refuses '' "$bad"
done

mkdir -p "$work/test/life"
printf '/* one */\n#define CALLS_A SYS_a, SYS_b\n/* two */\n#define CALLS_B SYS_c\n' >"$work/test/life/library_calls.h"
check() { # ROWS of the table of docs/worst-cases.md
    rm -f "$work/src/base/check.h"
    printf '# Page\n\n| When | Calls |\n|---|---|\n%b\n\nText.\n' "$1" >"$work/docs/worst-cases.md"
    check_page 'None.'
}
# shellcheck disable=SC2016
accepts '| one | `b`; `a` at times |\n| [two](page.md) | `c` |'
# shellcheck disable=SC2016
for bad in '| one | `a`, `b` |' '| one | `a` |\n| two | `c` |' '| one | `a`, `b`, `d` |\n| two | `c` |' \
    '| one | `a`, `b` |\n| two | `c` |\n| three | `c` |'; do
    refuses '' "$bad"
done
exit $failed
