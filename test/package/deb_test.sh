#!/bin/sh
# SPDX-License-Identifier: MIT
# The Debian packages: built, without a word of lintian, installed into a fresh root of Debian 12, used, purged. The root is made once
# by debootstrap, in build/package/roots; HAKMEM_SUITE chooses another suite.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root makes a root of Debian"
for tool in debootstrap dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
suite=${HAKMEM_SUITE:-bookworm}
kept=$(dirname "$HAKMEM_BUILD")/package
base=$kept/roots/$suite
mkdir -p "$kept/roots"
mirror=$(apt-cache policy 2>/dev/null | sed -n "s|.*[0-9] \(http[^ ]*\) $suite/main.*|\1|p" | head -n 1)
if [ ! -e "$base/.with-python" ]; then
    rm -rf "$base"
    debootstrap --variant=minbase --include=python3 "$suite" "$base" ${mirror:+"$mirror"} >"$kept/debootstrap.log" 2>&1 ||
        skip "debootstrap cannot make a root of $suite here (build/package/debootstrap.log)"
    rm -rf "$base/var/cache/apt/archives" "$base/var/lib/apt/lists"
    mkdir -p "$base/var/cache/apt/archives/partial" "$base/var/lib/apt/lists/partial"
    : >"$base/.with-python"
fi
HAKMEM_PACKAGE_DIR="$work/package"
export HAKMEM_PACKAGE_DIR
expect 0 "$HAKMEM_SOURCE/hakmem" package deb
grep -c '\.deb$' "$work/out" >/dev/null || fail "no packages"
lintian --no-tag-display-limit "$work"/package/hakmem_*.changes >"$work/lintian" 2>/dev/null || fail "lintian fails"
grep -E '^[EW]:' "$work/lintian" && fail "lintian has something to say"

root=$work/root
cp -a "$base" "$root"
# shellcheck disable=SC2317 # expect calls it
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }
trap 'umount "$root/proc" 2>/dev/null || :; rm -rf --one-file-system "$work"' EXIT
mount -t proc proc "$root/proc"
find "$root" -xdev ! -path "$root/proc*" ! -path '*/dpkg/*' ! -path '*/var/log/*' | LC_ALL=C sort >"$work/before"
mkdir "$root/packages"
cp "$work"/package/*.deb "$root/packages/"
rm -f "$root"/packages/*dbgsym*
begin=$(date +%s)
expect 0 inside sh -c 'dpkg -i /packages/*.deb'
expect 0 inside hakmem run -- grep -c libhakmem /proc/self/maps
[ $(($(date +%s) - begin)) -le 10 ] || fail "from nothing to a program on hakmem takes more than 10 s"
expect 0 inside hakmem run --profile hardened -- grep -c hardened/libhakmem /proc/self/maps
# shellcheck disable=SC2016 # the inner shell expands it
expect 0 inside sh -c 'hakmem run --control -- sleep 30 & sleep 1
    hakmem check $! && hakmem explain $! && hakmem top --once --interval 0.2 $!; status=$?; kill $!; exit $status'
says out "is on hakmem"
says out "RSS is"
says out "thread name"
expect 0 inside hakmem options
mv "$root"/usr/lib/python3.*/json "$root/json" # as where only python3-minimal is installed
for word in options ps; do
    expect 2 inside hakmem $word
    says err "Python's standard library is not complete here: json is missing; install python3"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
done
mv "$root/json" "$(echo "$root"/usr/lib/python3.*)/json"
expect 2 inside hakmem enable cron
says err "there is no systemctl here"
if [ "$(uname -m)" = x86_64 ]; then
    readelf -n "$root"/usr/lib/*/libhakmem.so.0 | grep -q SHSTK || fail "no mark for the shadow stack"
fi
expect 0 inside dpkg --purge hakmem libhakmem-dev libhakmem0
rm -r "$root/packages"
find "$root" -xdev ! -path "$root/proc*" ! -path '*/dpkg/*' ! -path '*/var/log/*' | LC_ALL=C sort >"$work/after"
diff "$work/before" "$work/after" | grep '^>' && fail "purge leaves something"
exit $failed
