#!/bin/sh
# SPDX-License-Identifier: MIT
# The tarball: unpacked, installed, used, installed over itself, removed without a trace.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
expect 0 package tarball
tarball=$(cat "$work/out")
tar -xzf "$tarball" -C "$work"
install=$(echo "$work"/hakmem-*-linux-*/install.sh)
mkdir -p "$work/prefix/lib" "$work/prefix/share/man"
echo theirs >"$work/prefix/share/man/theirs"
expect 0 "$install" --prefix "$work/prefix"
hakmem=$work/prefix/bin/hakmem
expect 0 "$hakmem" run -- grep -c 'prefix/lib/libhakmem' /proc/self/maps
expect 0 "$hakmem" run --profile hardened -- grep -c 'hakmem/hardened/libhakmem' /proc/self/maps
expect 0 "$hakmem" options
observes "$work/prefix/bin/hakmem-observe" "$hakmem" run --
for name in hakmem hakmem-observe; do
    [ -s "$work/prefix/share/man/man1/$name.1" ] || fail "no manual of $name"
done
expect 0 "$install" --prefix "$work/prefix" # again
expect 0 "$install" --prefix "$work/prefix" --uninstall
left=$(cd "$work/prefix" && find . | LC_ALL=C sort | tr '\n' ' ')
[ "$left" = ". ./lib ./share ./share/man ./share/man/theirs " ] || fail "uninstall leaves $left"
expect 1 "$install" --prefix "$work/prefix" --uninstall
says err "nothing of ours"
expect 0 "$install" --prefix "$work/made"
expect 0 "$install" --prefix "$work/made" # which is ours all the same
expect 0 "$install" --prefix "$work/made" --uninstall
[ ! -e "$work/made" ] || fail "uninstall leaves the prefix that install made"
expect 1 "$install" --frobnicate
one_line 1 "cannot write to" "$install" --prefix "$work/prefix/share/man/theirs"
needed=$(cat "$(dirname "$install")/GLIBC")
[ "$needed" = 2.17 ] || fail "the libraries need glibc $needed"
for other in 2.17 1.99; do # that is met
    echo $other >"$(dirname "$install")/GLIBC"
    expect 0 "$install" --prefix "$work/prefix"
    expect 0 "$install" --prefix "$work/prefix" --uninstall
done
for other in 2.999 3.0; do
    echo $other >"$(dirname "$install")/GLIBC"
    one_line 1 "these libraries need glibc $other, this machine has" "$install" --prefix "$work/prefix"
    [ ! -e "$work/prefix/bin" ] || fail "installs for another glibc"
done
echo "$needed" >"$(dirname "$install")/GLIBC"
mkdir "$work/fake"
# shellcheck disable=SC2016 # that script expands it
printf '#!/bin/sh\necho "$CLAIMED"\n' >"$work/fake/getconf"
chmod +x "$work/fake/getconf"
for claimed in 'glibc 2.99.9000' 'glibc 2.99-dev' 'glibc 3.0' undefined 'musl 1.2.5' 'glibc new' ''; do
    expect 0 env PATH="$work/fake:$PATH" CLAIMED="$claimed" "$install" --prefix "$work/prefix"
    [ ! -s "$work/err" ] || fail "with '$claimed' it says: $(cat "$work/err")"
    expect 0 "$install" --prefix "$work/prefix" --uninstall
done
one_line 1 "this machine has 2.16.9000" env PATH="$work/fake:$PATH" CLAIMED='glibc 2.16.9000' "$install" --prefix "$work/prefix"
echo riscv64 >"$(dirname "$install")/MACHINE"
one_line 1 "these libraries are for riscv64" "$install" --prefix "$work/prefix"
[ ! -e "$work/prefix/bin" ] || fail "installs for another machine"
exit $failed
