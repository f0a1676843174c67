#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_figures.py refuses figures that are not those of the code, numbers without evidence, and names of tests
# that do not exist. Usage: figures_test.sh PYTHON
set -eu
# shellcheck source=test/check/begin.sh
. "$(dirname "$0")/begin.sh"
mkdir -p "$work/docs" "$work/test/golden"
cp "$root/test/golden/fastpath.x86-64.json" "$work/test/golden"
echo 'static void bin_is_bounded(void **state) {' >"$work/test/bin_test.c"
printf '#!/bin/sh\necho "tcache_bytes = 4224"\necho "map_part = 4"\necho "delay_ns = 500000000"\n' >"$work/program"
chmod +x "$work/program"

# check TEXT EVIDENCE: of a page on which all figures must be
check() {
    printf '# Worst\n%s\n' "$1" >"$work/docs/worst-cases.md"
    printf 'page\tsection\ttext\tevidence\n' >"$work/docs/evidence.tsv"
    printf '%b\n' "$2" | sed 's/; /\n/g' | sed 's/^\([^:]*\): /docs\/worst-cases.md\tWorst\t\1\t/' >>"$work/docs/evidence.tsv"
    "$python" "$root/tools/check_figures.py" "$work/program" "$HAKMEM_LIB" --root "$work" >"$work/out" 2>&1
}

text='A thread has 4.1 KiB, a quarter for half a second, and two bins.'
evidence='4.1 KiB: tcache_bytes\nquarter: map_part; half a second: delay_ns'
bins='two: bin_is_bounded'
accepts "$text" "$evidence\\n$bins"
accepts "$text" "$evidence\\ntwo bins: \"a reason\", bin_is_bounded"
accepts "$text \`cache:9\`, [page](7.md), x86-64" "$evidence\\n$bins"
refuses '' "$text" "$evidence"                        # two, in words
refuses '' "$text And 8 more." "$evidence\\n$bins"    # without evidence
refuses '' "$text" "$evidence\\ntwo: bin_is_endless"  # no such test
refuses '' "$text" "$evidence\\n$bins; 9: \"gone\""   # not in the text
refuses '' "A thread has 4.2 KiB, a quarter for half a second." "4.2 KiB: tcache_bytes\\nquarter: map_part; half a second: delay_ns"
refuses '' "A thread has 4.1 MiB, a quarter for half a second." "4.1 MiB: tcache_bytes\\nquarter: map_part; half a second: delay_ns"
refuses '' "A thread has 4.1 KiB, half for half a second." "4.1 KiB: tcache_bytes\\nhalf for: map_part; half a second: delay_ns"
refuses '' "A thread has 4.1 KiB." "4.1 KiB: tcache_bytes" # the others are on no page
exit $failed
