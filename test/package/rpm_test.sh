#!/bin/sh
# SPDX-License-Identifier: MIT
# The RPM packages: what they ask for, and their files, unpacked and used. Without rpmbuild the command says so at once.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
mkdir "$work/few"
for tool in sh python3 git; do
    ln -s "$(command -v $tool)" "$work/few/$tool"
done
one_line 1 "missing: rpmbuild" env PATH="$work/few" PYENV_VERSION= "$(python3 -c 'import sys; print(sys.executable)')" -B \
    "$HAKMEM_SOURCE/tools/package.py" package rpm
[ ! -e "$HAKMEM_PACKAGE_DIR" ] || fail "something was made before that: $(find "$HAKMEM_PACKAGE_DIR")"
needs rpmbuild rpm2archive tar
expect 0 package rpm
rpms=$(cat "$work/out")
[ "$(echo "$rpms" | wc -l)" -eq 2 ] || fail "not two packages: $rpms"
mkdir "$work/root"
for file in $rpms; do
    rpm2archive "$file"
    tar -xzf "$file.tgz" -C "$work/root"
    rpm -qp --requires "$file" >"$work/requires" 2>/dev/null
    grep -o 'GLIBC_[0-9.]*' "$work/requires" | sed 's/GLIBC_//' >"$work/versions" || :
    newest=$(sort -V "$work/versions" | tail -n 1)
    [ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] || fail "$file asks for glibc $newest"
done
grep -q '^libc.so.6' "$work/requires" || rpm -qp --requires "$(echo "$rpms" | head -n 1)" | grep -q '^libc.so.6' ||
    fail "the package does not ask for the C library"
hakmem=$work/root/usr/bin/hakmem
expect 0 "$hakmem" run -- grep -c 'usr/lib64/libhakmem' /proc/self/maps
expect 0 "$hakmem" run --profile hardened -- grep -c 'lib64/hakmem/hardened/libhakmem' /proc/self/maps
expect 0 "$hakmem" options
observes "$work/root/usr/bin/hakmem-observe" "$hakmem" run --
for name in usr/include/hakmem/hakmem.h usr/lib64/libhakmem.a usr/lib64/cmake/hakmem/hakmem-config.cmake \
    usr/share/hakmem/docs/quick-start.md usr/lib64/hakmem/python/functions.so; do
    [ -s "$work/root/$name" ] || fail "$name is in no package"
done
for name in hakmem hakmem-observe; do
    [ -n "$(find "$work/root/usr/share/man/man1" -name "$name.1*")" ] || fail "no manual of $name"
done
exit $failed
