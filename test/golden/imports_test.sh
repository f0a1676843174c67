#!/bin/sh
# SPDX-License-Identifier: MIT
# Libraries run from glibc 2.17 on: no name that they import has a newer version, and none is needed from libraries that were
# joined with libc.so.6 later. Usage: imports_test.sh READELF NM LIBRARY...
set -eu
readelf=$1
nm=$2
shift 2
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}

for library; do
    versions=$("$readelf" -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV)
    [ -n "$versions" ] || fail "$library: no versions are seen"
    newest=$(echo "$versions" | tail -n 1)
    [ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] || fail "$library needs glibc $newest"
    # What is younger has no version, and may be missing.
    "$nm" -D --undefined-only "$library" | awk '$1 == "U" && $2 !~ /@GLIBC_/ { print $2 }' >"${TMPDIR:-/tmp}/imports.$$"
    [ ! -s "${TMPDIR:-/tmp}/imports.$$" ] || fail "$library imports without a version: $(cat "${TMPDIR:-/tmp}/imports.$$")"
    rm -f "${TMPDIR:-/tmp}/imports.$$"
    case $library in
    *libhakmem*) # a program that links neither libpthread nor libdl has none of these before 2.34
        for name in pthread_create pthread_detach pthread_join pthread_attr_setstacksize pthread_setname_np pthread_key_create \
            pthread_setspecific dlsym dladdr dlerror; do
            kind=$("$nm" -D --undefined-only "$library" | awk -v name="$name@" 'index($2, name) == 1 { print $1 }')
            [ "${kind:-w}" = w ] || fail "$library needs $name"
        done
        ;;
    esac
done
exit $failed
