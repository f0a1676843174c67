#!/bin/sh
# SPDX-License-Identifier: MIT
# Every page that the installed command, library, header or manual names is installed, and `hakmem docs` shows it; their links
# lead to what is installed; nothing names `./hakmem`, which is in a clone only, but pages that say so.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
prefix=$work/prefix
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$prefix"
hakmem=$prefix/bin/hakmem
docs=$prefix/share/hakmem/docs

expect 0 "$hakmem" docs
head -n 1 "$work/out" | grep -qxF "$(readlink -f "$docs")" || fail "the folder is not the first line: $(head -n 1 "$work/out")"
grep -qx '  quick-start       Quick start' "$work/out" || fail "no title of quick-start: $(cat "$work/out")"
[ "$(sed 1,2d "$work/out" | wc -l)" -eq "$(find "$docs" -name '*.md' | wc -l)" ] || fail "not all pages are listed"
for word in learning docs/learning.md; do
    expect 0 env PATH="$PATH" PAGER=false "$hakmem" docs $word
    says out "# What the learner does"
done
expect 2 "$hakmem" docs nope
says err "there is no page 'nope'; hakmem docs lists them"
expect 2 "$hakmem" docs one two
expect 0 "$hakmem" docs --help
says out "docs [PAGE]"
expect 0 "$HAKMEM_SOURCE/hakmem" docs learning
says out "# What the learner does"

# What names a page: `hakmem docs NAME`, page('NAME') of the viewers, and docs/PATH of comments. Text in libraries counts.
{
    find "$prefix" -type f ! -path "$docs/*" ! -name '*.a' -exec cat {} +
    env HAKMEM_OPTIONS=help "$hakmem" run -- true 2>&1
} | LC_ALL=C tr -d '\134' >"$work/all"
LC_ALL=C grep -aoE "hakmem docs [a-z-]+|page\(['\"][a-z-]+['\"]\)|docs/[a-z/-]+\.[a-z.]+[a-z]" "$work/all" | sort -u >"$work/named"
for name in 'hakmem docs security' "page('learning')" docs/schema/stats.schema.json; do
    grep -qxF "$name" "$work/named" || fail "the test does not find '$name': $(cat "$work/named")"
done
while IFS= read -r name; do
    case $name in
    "hakmem docs lists" | "hakmem docs prints") ;; # a sentence
    docs/*) [ -f "$prefix/share/hakmem/$name" ] || fail "'$name' is named and not installed" ;;
    *)
        page=${name#hakmem docs }
        page=${page#page(?}
        expect 0 "$hakmem" docs "${page%?)}"
        ;;
    esac
done <"$work/named"

# Comments and documentation strings may: they are for readers of the source.
find "$prefix" -type f ! -path "$docs/*" ! -name '*.a' -exec grep -anH '\./hakmem' {} + |
    grep -vE ':[0-9]+:( *""".*|.*# .*|"""|/\*.*| \*.*|standard library.*)' >"$work/clone" || :
[ ! -s "$work/clone" ] || fail "names a command of a clone: $(cat "$work/clone")"

# Pages may, where they say what it is.
grep -lE '\./hakmem [a-z]' "$docs"/*.md >"$work/clone"
[ "$(wc -l <"$work/clone")" -gt 2 ] || fail "the test finds few pages with ./hakmem: $(cat "$work/clone")"
while IFS= read -r page; do
    grep -qiE 'in (a|the) clone' "$page" || fail "$page names ./hakmem and does not say that this is of a clone"
done <"$work/clone"

expect 0 python3 -B - "$docs" <<'PYTHON'
import pathlib
import re
import sys
docs = pathlib.Path(sys.argv[1])
anchors = {page.name: {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
                       for title in re.findall(r"(?m)^#+ (.*)$", page.read_text())} for page in docs.glob("*.md")}
count = 0
for page in docs.glob("*.md"):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        count += 1
        if name and not (docs / name).is_file():
            print(f"{page.name}: {target} is not installed")
        elif anchor and anchor not in anchors[name or page.name]:
            print(f"{page.name}: {target} has no such heading")
if count < 50:
    print(f"only {count} links were looked at")
PYTHON
[ ! -s "$work/out" ] || fail "$(cat "$work/out")"
exit $failed
