#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_words.py refuses each private word that was given up, in the source and in pages, but not in the ledger.
# Usage: words_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"
mkdir -p "$work/src/slab" "$work/docs/experiments"

# refused FILE TEXT NUMBER: that many lines of the text are refused, the words in the ledger and the changelog are not
refused() {
    rm -f "$work/src/slab/slab.c" "$work/docs/page.md" "$work/README.md"
    printf '%s\n' "$2" >"$work/$1"
    printf '%s\n' "$words" >"$work/docs/experiments/0001-page.md"
    cp "$work/docs/experiments/0001-page.md" "$work/CHANGELOG.md"
    status=0
    "$python" "$root/tools/check_words.py" --root "$work" >"$work/out" 2>&1 || status=$?
    found=$(grep -c '^check_words: ' "$work/out") || true
    if [ "$found" -ne "$3" ] || [ "$status" -ne "$(($3 > 0))" ]; then
        echo "FAIL: of $1 $found lines are refused, not $3"
        cat "$work/out"
        failed=1
    fi
}

# One a line, in the order of the checker's table.
words='the hunting of a block
hak_fast_stays()
see rare.c
hak_owner_enter(owner)
slab->lacks_tags
hak_owner_add(&count, 1)
hak_slow_malloc_medium(size)
superslab->back[unit]
large/resident.c
life/next.c
policy/policy.h
midway in a change
the guest has none
it spills the bin
the next allocator
blocks are handed over
hak_owner_purge_holes()
slabs are tended
a dear touch
hak_guard_accuse(slot)
again_bytes
hak_residence_look()
who finds it taken'

patterns=$("$python" "$root/tools/check_words.py" --list | wc -l)
examples=$(printf '%s\n' "$words" | wc -l)
[ "$patterns" -eq "$examples" ] || {
    echo "FAIL: $patterns patterns, $examples examples"
    failed=1
}
for file in src/slab/slab.c docs/page.md README.md; do
    refused $file "$words" "$examples"
done
refused src/slab/slab.c '/* for who reads it: whoever comes, and others who come */' 2
refused src/slab/slab.c 'find_free.c searches; hak_owner_lock(owner); a cold path; callback[0]; in_unlocked_update; fallback_use' 0
refused docs/page.md 'attend; pretending; [measured](experiments/0108-dear-huge-pages.md); indeed' 0
refused docs/page.md 'Flush the bin of the fallback tcache; event fallback_use.' 0
exit $failed
