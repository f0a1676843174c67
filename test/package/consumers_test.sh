#!/bin/sh
# SPDX-License-Identifier: MIT
# Each project of test/consumer that is built against an installed tree builds, runs, and runs on hakmem; of cargo see crate_test.sh.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
consumer=$HAKMEM_SOURCE/test/consumer
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$work/prefix"
library=$(dirname "$(find "$work/prefix" -name libhakmem.a)")
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
ours() { # PROGRAM...
    expect 0 "$@"
    says out "on hakmem"
}

expect 0 cmake -G Ninja -S "$consumer/cmake" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix"
expect 0 cmake --build "$work/cmake"
for program in c_hakmem c_static cxx_hakmem cxx_static; do ours "$work/cmake/$program"; done

expect 0 "${CC:-cc}" -I"$work/prefix/include" "$consumer/cc/main.c" -o "$work/shared" -L"$library" -lhakmem -Wl,-rpath,"$library"
ours "$work/shared"
expect 0 "${CC:-cc}" -static -I"$work/prefix/include" "$consumer/cc/main.c" "$library/libhakmem.a" -o "$work/static"
ours "$work/static"

if command -v pkg-config >/dev/null; then
    expect 0 make -C "$consumer/pkgconfig" OUT="$work"
    ours "$work/main"
else
    echo "no pkg-config: its project is not built"
fi

if command -v meson >/dev/null && command -v pkg-config >/dev/null; then
    mkdir "$work/meson"
    cp "$consumer/meson/meson.build" "$consumer/cc/main.c" "$consumer/cmake/main.cpp" "$work/meson/"
    expect 0 meson setup "$work/meson/build" "$work/meson"
    expect 0 meson compile -C "$work/meson/build"
    for program in main_c main_cpp; do ours env LD_LIBRARY_PATH="$library" "$work/meson/build/$program"; done
else
    echo "no meson: its project is not built"
fi

if python3 -c 'import ensurepip, venv' 2>/dev/null; then
        expect 0 package wheel
    wheel=$(cat "$work/out")
    expect 0 python3 -m venv "$work/venv"
    expect 0 "$work/venv/bin/pip" --disable-pip-version-check install --no-index "$wheel"
    ours "$work/venv/bin/python" "$consumer/pip/prog.py"
fi
exit $failed
