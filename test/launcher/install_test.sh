#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed tree serves CMake (shared and static), pkg-config, a plain compiler, and has a command that works.
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

# Within another project the names of targets are ours to the eye.
mkdir "$work/outer"
cat >"$work/outer/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.21)
project(outer C CXX)
add_custom_target(python_names)
add_subdirectory($HAKMEM_SOURCE hakmem)
get_property(names DIRECTORY $HAKMEM_SOURCE PROPERTY BUILDSYSTEM_TARGETS)
list(FILTER names INCLUDE REGEX python)
if(NOT names STREQUAL "hakmem_python_functions;hakmem_python")
  message(FATAL_ERROR "targets: \${names}")
endif()
CMAKE
expect 0 cmake -G Ninja -S "$work/outer" -B "$work/outer/build"

# The installed command, with the standard library of Python alone.
unset PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX
command=$prefix/bin/hakmem
chmod -R a-w "$prefix"
expect 0 "$command" --version
prints "hakmem $version"
expect 7 "$command" run -- sh -c "grep -q libhakmem /proc/self/maps && exit 7"
expect 127 "$command" run -- "$work/no-such-program"
expect 2 "$command" run --profile no-such -- true
says err "there are:"
expect 2 "$command" test
says err "source tree only"
start "$command" run --
if may_observe; then
    expect 0 "$command" stats "$pid"
    expect 0 "$command" explain "$pid"
    [ -s "$work/out" ] || fail "explain prints nothing"
    expect 0 "$command" ps
    says out "$pid"
fi
stop
observes "$prefix/bin/hakmem-observe" "$command" run --
printf 'kept = []\ndef remember():\n    kept.append(bytes(1000))\nfor _ in range(20000): remember()\n' >"$work/prog.py"
expect 0 "$command" profile --rate 16k --alloc -- /usr/bin/python3 "$work/prog.py"
says out "remember at prog.py:2"
chmod -R u+w "$prefix" # now Python may write beside its files
expect 0 "$command" profile --rate 16k --alloc -- /usr/bin/python3 "$work/prog.py"
says out "remember at prog.py:2"
[ -z "$(find "$prefix" -name __pycache__)" ] || fail "the command writes into the prefix"

# What install lists is all that it left, debug symbols apart included; uninstall leaves not even a folder of ours.
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$work/again"
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$work/again" --component debug
library=$(find "$work/again" -name 'libhakmem.so.*.*.*' ! -name '*.debug')
"${READELF:-readelf}" -SW "$library" | grep -q '\.debug_info' && fail "the installed library has debug symbols"
symbols=$(find "$work/again" -path '*/.debug/*')
"${READELF:-readelf}" -SW "$symbols" | grep -q '\.debug_info' || fail "no debug symbols in $symbols"
[ "$(stat -c %s "$library")" -lt 330000 ] || fail "the library has $(stat -c %s "$library") bytes"
observer=$work/again/bin/hakmem-observe
"${READELF:-readelf}" -SW "$observer" | grep -q '\.debug_info\|\.symtab' && fail "the installed observer has symbols"
"${READELF:-readelf}" -lW "$observer" | grep -q INTERP && fail "the installed observer needs a C library"
if command -v gdb >/dev/null; then
    gdb -batch -ex 'info line hak_malloc' "$library" 2>&1 | grep -q 'Line ' || fail "gdb does not find the symbols"
fi
expect 0 cmake -D MANIFESTS="$HAKMEM_BUILD/install_manifest" -P "$HAKMEM_SOURCE/cmake/uninstall.cmake"
says out "removed $work/again/"
left=$(find "$work/again" ! -type d -o -name '*hakmem*')
[ -z "$left" ] || fail "uninstall leaves: $left"
expect 0 cmake -D MANIFESTS="$HAKMEM_BUILD/install_manifest" -P "$HAKMEM_SOURCE/cmake/uninstall.cmake"
says out "nothing is removed: no file that"
expect 1 cmake -D MANIFESTS="$work/no_manifest" -P "$HAKMEM_SOURCE/cmake/uninstall.cmake"
says err "nothing is removed: there is no manifest"
exit $failed
