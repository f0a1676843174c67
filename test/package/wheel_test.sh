#!/bin/sh
# SPDX-License-Identifier: MIT
# The wheel in a fresh virtual environment, without any network: module, command, enable(), the tag, removal.
set -eu
# shellcheck source=test/package/package.sh
. "$HAKMEM_SOURCE/test/package/package.sh"
python3 -c 'import ensurepip, venv' 2>/dev/null || skip "Python has no venv"
expect 0 package wheel
wheel=$(cat "$work/out")
needed=$(readelf -V "$HAKMEM_LIB" "$(dirname "$HAKMEM_BUILD")/hardened/libhakmem.so" |
    grep -o 'GLIBC_[0-9]*\.[0-9]*' | sort -t_ -k2 -Vu | tail -n 1 | sed 's/GLIBC_//; s/\./_/')
case $wheel in
*"-py3-none-manylinux_${needed}_$(uname -m).whl") ;;
*) fail "the tag of $wheel is not that of glibc $needed" ;;
esac
expect 0 python3 -m venv "$work/venv"
expect 0 "$work/venv/bin/pip" --disable-pip-version-check install --no-index "$wheel"
cat >"$work/prog.py" <<'PYTHON'
import os
import sys
import hakmem
if "--enable" in sys.argv:
    assert hakmem.enable(options="cache:1m")
assert hakmem.is_active(), "not on hakmem"
assert hakmem.stats()["bytes"]["live"] > 0
assert "RSS is" in hakmem.explain() and hakmem.explain(as_data=True)["causes"]
profile = hakmem.profile()
assert profile["is_on"] == ("profile_rate:1024" in os.environ.get("HAKMEM_OPTIONS", "")), profile["is_on"]
assert not profile["is_on"] or profile["samples"]["live"] > 0
hakmem.trim()
print(*sys.argv[1:])
sys.exit(7)
PYTHON
python=$work/venv/bin/python
expect 7 "$python" -m hakmem run "$work/prog.py" 'a b' c
prints "a b c"
expect 7 "$work/venv/bin/hakmem" run --profile low-memory -- "$work/prog.py" d
prints d
expect 7 env HAKMEM_OPTIONS=profile_rate:1024 "$python" -m hakmem run "$work/prog.py" sampled
prints sampled
expect 7 "$python" "$work/prog.py" --enable e
prints "--enable e"
cat >"$work/named.py" <<'PYTHON'
import os
import subprocess
import sys
import hakmem
hakmem.enable(options="profile_rate:16384,observable:1", functions=True)
kept = []
def remember():
    kept.append(bytes(1000))
for _ in range(20000):
    remember()
print(subprocess.run([sys.argv[1], "profile", "--seconds", "0", str(os.getpid())], text=True, check=True, capture_output=True,
                     env=dict(os.environ, LD_PRELOAD="", PYTHONPERFSUPPORT="0")).stdout)
print("process", os.getpid())
PYTHON
expect 0 "$python" "$work/named.py" "$work/venv/bin/hakmem"
says out "remember at named.py:7"
map=/tmp/perf-$(sed -n 's/^process //p' "$work/out").map
[ ! -e "$map" ] || fail "it leaves $map"
rm -f "$map"
expect 1 "$python" "$work/prog.py"
says err "not on hakmem"
expect 0 "$python" -m hakmem run -c 'import hakmem; print(hakmem.is_active())'
prints True
expect 0 "$work/venv/bin/hakmem" run -- grep -c libhakmem /proc/self/maps
observes "$work/venv/lib"/python3*/site-packages/hakmem/_tree/bin/hakmem-observe "$work/venv/bin/hakmem" run --
expect 0 "$work/venv/bin/hakmem" options cache
says out "option  default"
expect 0 "$work/venv/bin/hakmem" translate MIMALLOC_SHOW_STATS=1
expect 2 "$work/venv/bin/hakmem" check 999999999
cat >"$work/holds.py" <<'PYTHON'
import hakmem
kept = [bytes(i % 3000) for i in range(20000)]
assert hakmem.profile()["is_on"] and hakmem.profile()["sites"]
PYTHON
for words in "profile --rate 64k" map; do
    # shellcheck disable=SC2086 # words
    expect 0 "$work/venv/bin/hakmem" $words -- "$work/holds.py" # as `run` does, by this Python
    [ -s "$work/out" ] || fail "$words of a Python program prints nothing"
    sed -i '$d' "$work/holds.py" # map does not sample
done
(cd "$work" && expect 0 "$work/venv/bin/hakmem" docs profiling)
cmp "$work/out" "$work/venv/lib"/python3*/site-packages/hakmem/_tree/share/hakmem/docs/profiling.md || fail "docs prints something else"
expect 1 "$python" -c 'import hakmem; hakmem.stats()'
says err "call hakmem.enable() first"
[ "$(grep -c Traceback "$work/err")" -eq 1 ] || fail "more than one traceback: $(cat "$work/err")"
expect 0 "$work/venv/bin/pip" uninstall -y hakmem
[ -z "$(find "$work/venv" -name '*hakmem*')" ] || fail "pip leaves $(find "$work/venv" -name '*hakmem*')"
exit $failed
