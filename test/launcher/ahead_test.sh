#!/bin/sh
# SPDX-License-Identifier: MIT
# `test` builds the other presets while the tests of the first run; a build that fails counts, and what was built is
# tested. Building and testing are only written down here.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"

mkdir -p "$work/tree/build/release" "$work/tree/build/debug-audit" "$work/bin"
mkdir -p "$work/tree/tools"
cp "$HAKMEM_SOURCE/hakmem" "$work/tree/"
cp "$HAKMEM_SOURCE/tools/launch.sh" "$work/tree/tools/"
touch "$work/tree/build/release/CTestTestfile.cmake" "$work/tree/build/debug-audit/CTestTestfile.cmake"
double() { # NAME BODY
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
for tool in cc c++ ninja pkg-config renice setarch strace; do
    double $tool 'exit 0'
done
# The tests of release end when the other build has begun: it does not wait for them.
double cmake "case \$* in *--build*) echo build \"\$2\" >>'$work/log'; echo \"words of \$2\";; esac
[ ! -e '$work/broken' ] || case \$* in '--build build/debug-audit'*) exit 1;; esac"
double ctest "for each in \$(seq 60); do
    grep -qs debug-audit '$work/log' && break
    sleep 1
done
echo test \"\${2##*/}\" >>'$work/log'
while [ \$1 != --output-junit ]; do shift; done
echo '<testsuite tests=\"3\" failures=\"0\" disabled=\"0\" skipped=\"0\">' | tr ' ' '\n' | sed 's/^/ /' >\"\$2\""

# shellcheck disable=SC2317 # called through expect
quick() {
    PATH=$work/bin:$PATH CC=cc CXX=c++ "$work/tree/hakmem" test --quick
}

expect 0 quick
says out "6 passed, 0 failed, 0 skipped"
says err "words of build/release"
says err "words of build/debug-audit"
printf '%s\n' 'build build/release' 'build build/debug-audit' 'test release' 'test debug-audit' >"$work/wanted"
cmp -s "$work/log" "$work/wanted" || fail "not in this order: $(cat "$work/log")"
[ ! -e "$work/tree/build/.ahead" ] || fail "the pipe is still there"

rm "$work/log"
touch "$work/broken"
expect 1 quick
says out "6 passed, 1 failed, 0 skipped"
says err "the build of debug-audit failed; what was built is tested"
exit $failed
