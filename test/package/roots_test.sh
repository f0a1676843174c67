#!/bin/sh
# SPDX-License-Identifier: MIT
# The roots that tests of packages copy: made when there is none, kept, renewed after a week or when apt fails in them; where
# that is not possible the old one serves, which a line says.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
HAKMEM_BUILD=$work/build/release
export HAKMEM_BUILD
# shellcheck source=test/package/roots.sh
. "$HAKMEM_SOURCE/test/package/roots.sh"
needs_root_and busybox
LC_ALL=C ldd "$(command -v busybox)" 2>&1 | grep -q 'not a dynamic' || skip "busybox is not static: install busybox-static"
kept=$work/kept

# A debootstrap that makes a small root, with the answer of its apt in a file, and counts.
mkdir "$work/bin"
cat >"$work/bin/debootstrap" <<'SHELL'
#!/bin/sh
echo made >>"$FAKE/count"
[ ! -e "$FAKE/refuse" ] || { mkdir -p "$4"; echo "no network today"; exit 1; }
mkdir -p "$4/bin" "$4/var/cache/apt/archives"
cp "$(command -v busybox)" "$4/bin/busybox"
printf '#!/bin/busybox sh\nread status </status\nexit "$status"\n' >"$4/bin/apt-get"
chmod +x "$4/bin/apt-get"
echo 0 >"$4/status"
SHELL
chmod +x "$work/bin/debootstrap"
FAKE=$work
PATH=$work/bin:$PATH
export FAKE PATH

# made TIMES: so often until now
made() {
    [ "$(grep -c made "$work/count")" -eq "$1" ] || fail "made $(grep -c made "$work/count") times instead of $1"
}

: >"$work/refuse"
expect 1 kept_root trixie
rm "$work/refuse"
expect 0 kept_root trixie
made 2
expect 0 kept_root trixie
made 2
touch -d '6 days ago' "$kept/roots/trixie/.whole"
expect 0 kept_root trixie
made 2
touch -d '8 days ago' "$kept/roots/trixie/.whole"
expect 0 kept_root trixie
made 3
prints ""
expect 0 kept_root trixie
made 3
echo 1 >"$kept/roots/trixie/status"
expect 0 kept_root trixie
made 4
[ "$(cat "$kept/roots/trixie/status")" = 0 ] || fail "the root whose apt fails is still there"

: >"$work/refuse"
touch -d '8 days ago' "$kept/roots/trixie/.whole"
expect 0 kept_root trixie
made 5
prints "the root of trixie is older than a week, and stays: debootstrap says: no network today"
[ -e "$kept/roots/trixie/bin/busybox" ] || fail "the old root is gone"
[ ! -e "$kept/roots/trixie.new" ] || fail "half a root is left"
exit $failed
