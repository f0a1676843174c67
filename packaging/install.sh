#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what this folder holds, or removes it again. Usage: ./install.sh [--prefix FOLDER] [--uninstall]; without a prefix
# root installs into /usr/local, others into ~/.local.
set -eu

die() {
    echo "install.sh: $*" >&2
    exit 1
}

here=$(CDPATH='' cd -P "$(dirname "$0")" && pwd -P)
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
action=install
while [ $# -gt 0 ]; do
    case $1 in
    --prefix) [ $# -gt 1 ] || die "--prefix needs a folder" && prefix=$2 && shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --uninstall) action=uninstall ;;
    *) die "unknown word '$1'; there are: --prefix FOLDER, --uninstall" ;;
    esac
    shift
done
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
list=$prefix/share/hakmem/installed-files.txt

# remove: all files of the list, then the folders that were made for them, which end in a slash
remove() {
    (
        cd "$prefix"
        sort -r "$list" | while IFS= read -r name; do # a folder comes behind what is in it
            case $name in
            ./) ;; # $prefix itself, below
            */) rmdir "$name" 2>/dev/null || : ;;
            *) rm -f "$name" ;;
            esac
        done
    )
}

if [ "$action" = uninstall ]; then
    [ -f "$list" ] || die "nothing of ours is installed in $prefix"
    made_prefix=$(grep -cx '\./' "$list") || :
    remove
    [ "$made_prefix" -eq 0 ] || rmdir "$prefix" 2>/dev/null || :
    echo "removed from $prefix"
    exit
fi

machine=$(uname -m)
[ -f "$here/MACHINE" ] && [ "$(cat "$here/MACHINE")" != "$machine" ] &&
    die "these libraries are for $(cat "$here/MACHINE"), this machine is $machine"
# With an older one the loader would start no program that the library is preloaded into; musl has no such name.
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc=
case $glibc in
"glibc "[0-9]*.[0-9]*) glibc=${glibc#glibc } ;;
*) glibc= ;;
esac
if [ -n "$glibc" ] && [ -f "$here/GLIBC" ]; then
    needed=$(cat "$here/GLIBC")
    minor=${glibc#*.} # versions in development have a third number
    minor=${minor%%[!0-9]*}
    [ "${glibc%%.*}" -gt "${needed%%.*}" ] || { [ "${glibc%%.*}" -eq "${needed%%.*}" ] && [ "$minor" -ge "${needed#*.}" ]; } ||
        die "these libraries need glibc $needed, this machine has $glibc: build from source"
fi
made_prefix=0
if [ -f "$list" ]; then
    made_prefix=$(grep -cx '\./' "$list") || :
    remove
elif [ ! -e "$prefix" ]; then
    made_prefix=1
fi
cd "$here/tree"
names=$(find . -mindepth 1 -type d | sed 's|^\./||' | sort | while IFS= read -r name; do [ -e "$prefix/$name" ] || echo "$name/"; done
    find . ! -type d | sed 's|^\./||' | sort)
{ mkdir -p "$prefix/share/hakmem" && : >"$list"; } 2>/dev/null || die "cannot write to $prefix; --prefix FOLDER chooses another"
tar cf - . | (cd "$prefix" && tar xf -) || die "cannot write to $prefix"
{
    [ "$made_prefix" -eq 0 ] || echo ./
    echo "$names"
    echo share/hakmem/installed-files.txt
} >"$list"
# The library serves both C libraries; where this package has one built for musl alone and the machine has no other, that is taken.
lib=$(sed -n 's|/libhakmem\.so\.[0-9]*$||p' "$list" | grep -v hakmem/ | head -n 1)
if [ -d "$lib/hakmem/musl" ] && ls /lib/ld-musl-*.so.1 >/dev/null 2>&1 &&
    ! ls /lib*/ld-linux-*.so.* /lib/*/ld-linux-*.so.* >/dev/null 2>&1; then
    real=$(basename "$(readlink -f "$prefix/$lib/libhakmem.so")")
    cp "$prefix/$lib"/hakmem/musl/libhakmem.so.* "$prefix/$lib/$real"
    real=$(basename "$(readlink -f "$prefix/$lib/libhakmem-observe.so")")
    cp "$prefix/$lib"/hakmem/musl/libhakmem-observe.so.* "$prefix/$lib/$real"
fi
echo "installed into $prefix; try: $prefix/bin/hakmem run --report explain -- ls"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "$prefix/bin is not in PATH" ;;
esac
