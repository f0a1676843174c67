#!/bin/sh
# SPDX-License-Identifier: MIT
# Every header compiles alone, in both values of every switch; the public ones also as C++.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cc=${CC:-cc}
cxx=${CXX:-c++}
failed=0

# compile LABEL COMPILER LANGUAGE FLAGS…: reads the source from stdin
compile() {
    label=$1
    shift
    if ! "$@" -Wall -Wextra -Wundef -Werror -fsyntax-only -I"$root/src" -I"$root/include" - ; then
        echo "check_headers: $label does not compile alone ($1)" >&2
        failed=1
    fi
}

cd "$root"
headers=$(find src -name '*.h' | LC_ALL=C sort)
for header in $headers; do
    for bit in 0 1; do
        printf '#include "%s"\n' "${header#src/}" |
            compile "$header" "$cc" -x c -std=gnu17 -DHAK_AUDIT=$bit -DHAK_HARDEN=$bit \
                -DHAK_OVERRIDE=$bit -DHAK_FAULT=$bit
    done
done
for header in $(find include -name '*.h' | LC_ALL=C sort); do
    for standard in c99 c11 c17; do
        printf '#include "%s"\nint main(void) { return 0; }\n' "${header#include/}" |
            compile "$header" "$cc" -x c -std=$standard -pedantic
    done
done
for header in $(find include \( -name '*.h' -o -name '*.hpp' \) | LC_ALL=C sort); do
    printf '#include "%s"\n' "${header#include/}" |
        compile "$header" "$cxx" -x c++ -std=c++17 -pedantic
done
exit $failed
