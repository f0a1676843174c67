#!/bin/sh
# SPDX-License-Identifier: MIT
# A fresh copy in a folder with a space: two runs at once build once; `lib` is quiet, and fast when
# nothing changed; a changed source is noticed; `clean` removes all.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
copy="$work/fresh copy"
mkdir "$copy"
cd "$HAKMEM_SOURCE"
cp -R CMakeLists.txt CMakePresets.json LICENSE README.md bench cmake docs hakmem include observe src tcmalloc test tools "$copy/"
sed -i 's/^set(HAK_OPTIMIZE -O2 -g)$/set(HAK_OPTIMIZE -O1)/' "$copy/CMakeLists.txt" # it is built five times
grep -q 'HAK_OPTIMIZE -O1' "$copy/CMakeLists.txt" || fail "CMakeLists.txt chooses -O2 elsewhere"
mkdir "$work/elsewhere"
cd "$work/elsewhere"

"$copy/hakmem" run -- grep -c libhakmem /proc/self/maps >"$work/first.out" 2>"$work/first.err" &
first=$!
"$copy/hakmem" run -- sh -c 'grep -c libhakmem /proc/self/maps >/dev/null; exit 9' 2>"$work/second.err" &
second=$!
status=0
wait $first || status=$?
[ $status -eq 0 ] || fail "first run: status $status: $(cat "$work/first.err")"
status=0
wait $second || status=$?
[ $status -eq 9 ] || fail "second run: status $status: $(cat "$work/second.err")"
builds=$(cat "$work/first.err" "$work/second.err" | grep -c 'building the release library')
[ "$builds" -eq 1 ] || fail "$builds builds"
grep -q '^[1-9][0-9]*$' "$work/first.out" || fail "the library was not loaded: $(cat "$work/first.out")"

expect 0 "$copy/hakmem" lib
prints "$(cd "$copy" && pwd -P)/build/release/libhakmem.so"
[ -s "$work/err" ] && fail "lib is not quiet: $(cat "$work/err")"

# Up to date: no tool is needed at all.
mkdir "$work/bin"
for tool in sh dirname readlink find; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
expect 0 env PATH="$work/bin" "$copy/hakmem" lib

sleep 1
touch "$copy/src/unity.c"
expect 0 "$copy/hakmem" lib
says err "building the release library"
expect 0 "$copy/hakmem" lib
[ -s "$work/err" ] && fail "built again: $(cat "$work/err")"

# The hardened profile is a library of its own, built when first asked for.
expect 0 "$copy/hakmem" run --profile hardened -- grep -c build/hardened/libhakmem /proc/self/maps
says err "building the hardened library"
grep -q '^[1-9][0-9]*$' "$work/out" || fail "the hardened library was not loaded: $(cat "$work/out")"
expect 0 "$copy/hakmem" run --profile=hardened -- true
[ -s "$work/err" ] && fail "built again, or a warning: $(cat "$work/err")"

# A source that does not compile: status 1, nothing on stdout.
echo 'this is no C' >>"$copy/src/unity.c"
expect 1 "$copy/hakmem" lib
[ -s "$work/out" ] && fail "lib printed something"
says err "the build failed"

expect 0 "$copy/hakmem" clean
[ -e "$copy/build" ] && fail "clean left build/"
exit $failed
