#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_layers.py accepts a small correct tree and refuses each kind of trespass.
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"
cc=${CC:-cc}

fresh() {
    rm -rf "$work/src"
    mkdir -p "$work/src/base" "$work/src/span" "$work/src/slab" "$work/src/large"
    cat >"$work/src/LAYERS" <<'LAYERS'
folder base  0 *
folder span  1 span.h
folder slab  2 slab.h
folder large 2 large.h
upcall hak_life_start
system * string.h
LAYERS
    printf '#include <stddef.h>\nint hak_base(void);\n' >"$work/src/base/base.h"
    printf '#include "base/base.h"\nint hak_base(void) { return 1; }\n' >"$work/src/base/base.c"
    printf '#include "base/base.h"\nint hak_span(void);\n' >"$work/src/span/span.h"
    printf 'int hak_hidden(void);\n' >"$work/src/span/hidden.h"
    printf '#include "span/span.h"\nint hak_life_start(void);\nint hak_span(void) { return hak_base() + hak_life_start(); }\n' \
        >"$work/src/span/span.c"
    printf 'int hak_slab(void);\n' >"$work/src/slab/slab.h"
    printf '#include "slab/slab.h"\n#include "span/span.h"\nint hak_slab(void) { return hak_span(); }\n' \
        >"$work/src/slab/slab.c"
    printf 'int hak_large(void);\n' >"$work/src/large/large.h"
    printf '#include "large/large.h"\nint hak_large(void) { return 0; }\n' >"$work/src/large/large.c"
}

check() {
    set --
    for folder in base span slab large; do
        "$cc" -c -I"$work/src" -o "$work/$folder.o" "$work/src/$folder/$folder.c"
        set -- "$@" --folder $folder "$work/$folder.o"
    done
    "$python" "$root/tools/check_layers.py" --src "$work/src" "$@" >"$work/out" 2>&1
}

refuses() { # WHAT PATTERN
    if check; then
        echo "FAIL: accepted: $1"
        failed=1
    elif ! grep -q "$2" "$work/out"; then
        echo "FAIL: $1 refused for another reason:"
        cat "$work/out"
        failed=1
    fi
}

fresh
check || {
    echo "FAIL: correct tree refused:"
    cat "$work/out"
    failed=1
}

fresh
echo '#include "slab/slab.h"' >>"$work/src/span/span.c"
refuses "include upwards" "span (rank 1) may not include slab/slab.h (rank 2)"

fresh
echo '#include "slab/slab.h"' >>"$work/src/large/large.c"
refuses "include sideways" "large (rank 2) may not include slab/slab.h"

fresh
echo '#include "span/hidden.h"' >>"$work/src/slab/slab.c"
refuses "private header" "span/hidden.h is private"

fresh
echo '#include <unistd.h>' >>"$work/src/slab/slab.c"
refuses "system header" "<unistd.h> is not for slab/"

fresh
echo '#include "base/other.h"' >>"$work/src/base/base.h"
echo '#include "base/base.h"' >"$work/src/base/other.h"
sed -i '1i #pragma once' "$work/src/base/base.h" "$work/src/base/other.h"
refuses "include cycle" "include cycle: base/base.h -> base/other.h -> base/base.h"

fresh
echo 'int hak_slab(void); int hak_up(void); int hak_up(void) { return hak_slab(); }' >>"$work/src/span/span.c"
refuses "call upwards" "src/span: hak_slab (used by span)"

fresh
echo 'int hak_slab(void); int hak_side(void); int hak_side(void) { return hak_slab(); }' >>"$work/src/large/large.c"
refuses "call sideways" "src/large: hak_slab (used by large)"

fresh
sed -i '/^upcall/d' "$work/src/LAYERS"
refuses "unlisted up-call" "src/span: hak_life_start"

fresh
echo 'int hak_base(void);' >>"$work/src/span/span.h"
refuses "header of two files" "src/span/span.h: declares functions of 2 files: base/base.c, span/span.c"
echo 'several span/span.h' >>"$work/src/LAYERS"
check || {
    echo "FAIL: a listed header of two files refused:"
    cat "$work/out"
    failed=1
}
echo 'several base/base.h' >>"$work/src/LAYERS"
refuses "needless exception" "base/base.h need not be listed"

fresh
echo 'int x;' >"$work/src/loose.c"
refuses "file outside the folders" "only unity.c and cold.c lie outside"

fresh
printf '#include "span/span.c"\n#include "base/base.c"\n' >"$work/src/unity.c"
refuses "wrong order in unity.c" "files are not in rank order"
refuses "file missing in unity.c" "large/large.c is not included"

exit $failed
