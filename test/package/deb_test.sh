#!/bin/sh
# SPDX-License-Identifier: MIT
# The Debian packages: built, without a word of lintian, installed by apt into a fresh root of a suite, used, purged.
# HAKMEM_FULL=1: two builds are equal bit by bit.
# usage: deb_test.sh SUITE
set -eu
# shellcheck source=test/package/roots.sh
. "$HAKMEM_SOURCE/test/package/roots.sh"
suite=$1
needs_root_and debootstrap dpkg-buildpackage dh lintian
debs "$(uname -m)"
if [ "$suite" = bookworm ]; then # that of the lintian that is here
    lintian --no-tag-display-limit "$debs"/hakmem_*.changes >"$work/lintian" 2>/dev/null || fail "lintian fails"
    grep -E '^[EW]:' "$work/lintian" && fail "lintian has something to say"
    if [ -n "${HAKMEM_FULL-}" ]; then # again, in another folder
        SOURCE_DATE_EPOCH=$(sed -n 's/^ SOURCE_DATE_EPOCH="\(.*\)"/\1/p' "$debs"/hakmem_*.buildinfo)
        export SOURCE_DATE_EPOCH
        # shellcheck disable=SC2016 # the inner shell expands it
        expect 0 env HAKMEM_PACKAGE_DIR="$work/again/and-deeper" sh -c 'cd "$HAKMEM_SOURCE" && python3 -B tools/package.py package deb'
        for file in "$debs"/*.deb; do
            cmp "$file" "$work/again/and-deeper/$(basename "$file")" || fail "differs between two folders"
        done
    fi
fi
debian_root "$suite"
cp "$debs"/*.deb "$root/packages/"
rm -f "$root"/packages/*dbgsym*
expect 0 inside sh -c 'cd /packages && apt-get install -y ./*.deb'
expect 0 inside hakmem run -- grep -c libhakmem /proc/self/maps
expect 0 inside hakmem run --profile hardened -- grep -c hardened/libhakmem /proc/self/maps
looks_inside sleep 60
expect 0 inside hakmem options
expect 0 inside hakmem profile --rate 64k -- python3 -c 'kept = [bytes(5000) for _ in range(4000)]'
says out "Functions by bytes" # by the oldest Python that the tools run on, too
if [ "$suite" = bookworm ]; then # as the program is compiled here: one that needs libjemalloc.so.2
    printf 'int mallctl(void) { return 0; }' | cc -shared -fPIC -Wl,-soname,libjemalloc.so.2 -o "$work/libjemalloc.so" -x c -
    printf '#include <stdio.h>\nint mallctl();\nint main(void) { const char *text = ""; unsigned long bytes = sizeof text;
        mallctl("version", &text, &bytes, 0, 0ul);\n    return puts(text) < 0; }' |
        cc -o "$root/packages/needs-jemalloc" -x c - -L"$work" -ljemalloc
    expect 0 inside /packages/needs-jemalloc
    says out "-hakmem-"
    expect 0 inside env MALLOC_CONF=confirm_conf:true,background_thread:true /packages/needs-jemalloc
    says err "scavenger:1  from MALLOC_CONF"
    expect 0 inside dpkg -s hakmem-jemalloc
    says out "Provides: libjemalloc2 (= "
    # preloaded by the path of Debian's library, by a link to it as images for Rails have, and by its name
    debians=/$(cd "$root" && echo usr/lib/*/libjemalloc.so.2)
    ln -s "$debians" "$root/packages/libjemalloc.so"
    for path in "$debians" /packages/libjemalloc.so libjemalloc.so.2; do
        expect 0 inside env LD_PRELOAD="$path" MALLOC_CONF=dirty_decay_ms:1000,narenas:2,background_thread:true,confirm_conf:true \
            python3 -c 'print(sum(len(str(i)) for i in range(100000)), "libhakmem" in open("/proc/self/maps").read())'
        says out "488890 True"
        says err "scavenger:1  from MALLOC_CONF"
    done
    # and one that needs libtcmalloc.so.4: is a block of malloc the extension's?
    printf 'int MallocExtension_GetOwnership(void) { return 0; }' |
        cc -shared -fPIC -Wl,-soname,libtcmalloc.so.4 -o "$work/libtcmalloc.so" -x c -
    printf '#include <stdlib.h>\nint MallocExtension_GetOwnership(void *);\nint main(void) {
        return MallocExtension_GetOwnership(malloc(100)) != 1; }' |
        cc -o "$root/packages/needs-tcmalloc" -x c - -L"$work" -ltcmalloc
    expect 0 inside /packages/needs-tcmalloc
    for name in libtcmalloc_minimal.so.4 libtcmalloc.so.4; do
        expect 0 inside env LD_PRELOAD="/$(cd "$root" && echo usr/lib/*/$name)" TCMALLOC_MEMFS_MALLOC_PATH=/none \
            grep -c libhakmem /proc/self/maps
        says err "TCMALLOC_MEMFS_MALLOC_PATH"
    done
fi
if [ "$suite" = testing ]; then # its Python writes perf maps
    cp "$HAKMEM_SOURCE/test/view/programs/leaky.py" "$root/packages/"
    expect 0 inside hakmem profile --rate 64k --leaks -- python3 /packages/leaky.py 8
    says out "remember at leaky.py:$(grep -n 'the line of the leak' "$root/packages/leaky.py" | cut -d: -f1)  < main < <module>"
fi
mv "$root"/usr/lib/python3.*/json "$root/packages/json" # as where only python3-minimal is installed
for word in options ps; do
    one_line 2 "Python's standard library is not complete here: json is missing; install python3" inside hakmem $word
done
mv "$root/packages/json" "$(echo "$root"/usr/lib/python3.*)/json"
mv "$root/usr/bin/python3" "$root/packages/python3"
for word in explain top stats map profile; do one_line 2 "$word needs python3" inside hakmem $word 1; done
expect 0 inside hakmem run --report explain -- grep -c libhakmem /proc/self/maps
says err "RSS is"
mv "$root/packages/python3" "$root/usr/bin/python3"
one_line 2 "there is no systemctl here" inside hakmem enable cron
if [ "$(uname -m)" = x86_64 ]; then
    for library in "$root"/usr/lib/*/libhakmem.so.0 "$root"/usr/lib/*/hakmem/hardened/libhakmem.so.0; do
        readelf -n "$library" | grep -q 'IBT, SHSTK' || fail "$library has no marks for control-flow integrity"
    done
fi
expect 0 inside apt-get purge -y hakmem hakmem-jemalloc hakmem-tcmalloc libhakmem-dev libhakmem0
nothing_left
exit $failed
