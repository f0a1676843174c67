# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: MIT
# Sourced: what `./hakmem package` and `./hakmem release` do, whose lock `./hakmem test` holds while tests run.
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
export HAKMEM_PACKAGE_DIR="$work/package"

skip() {
    echo "skipped: $*"
    exit 77
}

needs() { # TOOL...
    for tool; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
}

# one_line STATUS TEXT COMMAND...: it ends with STATUS and one line on standard error that has TEXT
one_line() {
    wanted_status=$1 text=$2
    shift 2
    expect "$wanted_status" "$@"
    says err "$text"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
}

package() { # KIND [MACHINE]
    locked package "$@"
}

locked() { # package | release, WORDS...
    (
        exec 7>"$HAKMEM_SOURCE/build/.package-lock"
        flock 7
        cd "$HAKMEM_SOURCE" || exit 1
        for preset in release hardened; do
            [ -e "build/$preset/build.ninja" ] || cmake --preset "$preset" -Wno-dev --log-level=WARNING 7>&- >&2
            cmake --build "build/$preset" --target hakmem hakmem_static 7>&- >&2 || exit 1
        done
        exec python3 -B tools/package.py "$@" 7>&-
    )
}

# debs MACHINE: makes the Debian packages, once for the same sources; $debs is their folder
debs() {
    mkdir -p "$HAKMEM_SOURCE/build/package"
    sum=$(cd "$HAKMEM_SOURCE" && python3 -B -c 'import hashlib, sys
sys.path.insert(0, "tools")
from hakmem_package import stage
print(hashlib.sha256("".join(stage.digest(stage.ROOT / name) for name in stage.sources()
    if name.startswith(("src/", "include/", "cmake/", "tools/", "packaging/", "docs/", "README.md", "CMakeLists.txt"))).encode()).hexdigest()[:16])')
    debs=$HAKMEM_SOURCE/build/package/debs/$1-$sum
    (
        flock 7
        [ ! -e "$debs/.whole" ] || exit 0
        rm -rf "$HAKMEM_SOURCE/build/package/debs/$1"-*
        cd "$HAKMEM_SOURCE"
        HAKMEM_PACKAGE_DIR=$debs python3 -B tools/package.py package deb "$1" 7>&- || exit 1
        : >"$debs/.whole"
    ) 7>"$HAKMEM_SOURCE/build/.debs-lock-$1" >"$work/out" 2>"$work/err" || {
        echo "FAIL: package deb $1: $(cat "$work/err")"
        exit 1
    }
}
