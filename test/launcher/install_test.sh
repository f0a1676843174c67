#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed tree serves CMake (shared and static), pkg-config and a plain compiler.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
prefix=$work/prefix
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$work/first"
mv "$work/first" "$prefix" # an installed tree may be moved
headers=$(find "$prefix/include" -type f ! -path '*/include/hakmem/*.h' ! -path '*/include/hakmem/*.hpp')
[ -z "$headers" ] || fail "installed outside include/hakmem: $headers"

mkdir "$work/user"
cat >"$work/user/main.c" <<'C'
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    void *p = malloc(100);
    free(p);
    printf("%s\n", hak_version());
    return p == NULL;
}
C
cat >"$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(user C)
find_package(hakmem REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE hakmem::hakmem)
add_executable(static main.c)
target_link_libraries(static PRIVATE hakmem::static)
CMAKE
expect 0 cmake -G Ninja -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix"
expect 0 cmake --build "$work/user/build"
expect 0 "$work/user/build/shared"
version=$(cat "$work/out")
expect 0 "$work/user/build/static"
prints "$version"
readelf -dW "$work/user/build/static" | grep -q 'NEEDED.*libstdc' && fail "the archive asks for the C++ runtime"
readelf -dW "$work/user/build/shared" | grep -q 'NEEDED.*libhakmem\.so\.' || fail "not linked with the library"

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name hakmem.pc)")
    export PKG_CONFIG_PATH
    expect 0 pkg-config --modversion hakmem
    prints "$version"
    # shellcheck disable=SC2046 # a list of flags
    expect 0 "${CC:-cc}" $(pkg-config --cflags hakmem) -o "$work/user/plain" "$work/user/main.c" \
        $(pkg-config --libs hakmem)
    expect 0 env LD_LIBRARY_PATH="$(pkg-config --variable=libdir hakmem)" "$work/user/plain"
    prints "$version"
fi

# Fully static.
library=$(find "$prefix" -name libhakmem.a)
expect 0 "${CC:-cc}" -static -I"$prefix/include" -o "$work/user/closed" "$work/user/main.c" "$library"
expect 0 "$work/user/closed"
prints "$version"
exit $failed
