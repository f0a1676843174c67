# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Sourced: package KIND as `./hakmem package KIND` does, whose lock `./hakmem test` holds while tests run.

package() { # KIND
    (
        exec 7>"$HAKMEM_SOURCE/build/.package-lock"
        flock 7
        cd "$HAKMEM_SOURCE" || exit 1
        for preset in release hardened; do
            [ -e "build/$preset/build.ninja" ] || cmake --preset "$preset" -Wno-dev --log-level=WARNING 7>&- >&2
            cmake --build "build/$preset" --target hakmem hakmem_static 7>&- >&2 || exit 1
        done
        exec python3 -B tools/package.py package "$1" 7>&-
    )
}
