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

fresh
accepts "the tree"

fresh
echo '#include "slab/slab.h"' >>"$work/src/span/span.c"
refuses "span (rank 1) may not include slab/slab.h (rank 2)" # include upwards

fresh
echo '#include "slab/slab.h"' >>"$work/src/large/large.c"
refuses "large (rank 2) may not include slab/slab.h" # include sideways

fresh
echo '#include "span/hidden.h"' >>"$work/src/slab/slab.c"
refuses "span/hidden.h is private" # private header

fresh
echo '#include "span/hidden.h"' >>"$work/src/slab/slab.c"
echo 'opens slab' >>"$work/src/LAYERS"
accepts "a private header of lower rank in a folder that opens all"

fresh
echo '#include <unistd.h>' >>"$work/src/slab/slab.c"
refuses "<unistd.h> is not for slab/" # system header

fresh
echo '#include "base/other.h"' >>"$work/src/base/base.h"
echo '#include "base/base.h"' >"$work/src/base/other.h"
sed -i '1i #pragma once' "$work/src/base/base.h" "$work/src/base/other.h"
refuses "include cycle: base/base.h -> base/other.h -> base/base.h" # include cycle

fresh
echo 'int hak_slab(void); int hak_up(void); int hak_up(void) { return hak_slab(); }' >>"$work/src/span/span.c"
refuses "src/span: hak_slab (used by span)" # call upwards

fresh
echo 'int hak_slab(void); int hak_side(void); int hak_side(void) { return hak_slab(); }' >>"$work/src/large/large.c"
refuses "src/large: hak_slab (used by large)" # call sideways

fresh
sed -i '/^upcall/d' "$work/src/LAYERS"
refuses "src/span: hak_life_start" # unlisted up-call

fresh
echo 'int hak_base(void);' >>"$work/src/span/span.h"
refuses "src/span/span.h: declares functions of 2 files: base/base.c, span/span.c" # header of two files
echo 'several span/span.h' >>"$work/src/LAYERS"
accepts "the tree"
echo 'several base/base.h' >>"$work/src/LAYERS"
refuses "base/base.h need not be listed" # needless exception

fresh
echo 'int x;' >"$work/src/loose.c"
refuses "only unity.c and cold.c lie outside" # file outside the folders

fresh
printf '#include "span/span.c"\n#include "base/base.c"\n' >"$work/src/unity.c"
refuses "files are not in rank order" # wrong order in unity.c
refuses "large/large.c is not included" # file missing in unity.c

exit $failed
