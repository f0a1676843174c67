#!/bin/sh
# SPDX-License-Identifier: MIT
# `run`: the program gets the library, its own environment and arguments; we get its status and signal.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem
lib=$HAKMEM_LIB

run() { # STATUS PROGRAM…
    wanted_status=$1
    shift
    expect "$wanted_status" "$hakmem" run --lib "$lib" -- "$@"
}

run 0 sh -c 'printf "%s|" "$@"' name 'a b' '' '*'
prints 'a b||*|'
run 7 sh -c 'exit 7'
run 143 sh -c 'kill -TERM $$'
run 134 sh -c 'kill -ABRT $$'
# What cannot be started is one line of ours.
line() { # STATUS PROGRAM TEXT
    run "$1" "$2"
    [ "$(cat "$work/err")" = "hakmem: run: $3" ] || fail "$2: standard error is not: $3: $(cat "$work/err")"
}
echo '#!/no/such -x' >"$work/script"
line 127 "$work/gone" "there is no program '$work/gone'"
line 127 frobnicate-is-not-there "there is no program 'frobnicate-is-not-there'"
line 127 cd "there is no program 'cd'"
line 127 '' "there is no program ''"
line 126 "$work" "$work is a folder"
line 126 "$work/script" "$work/script may not be executed"
chmod +x "$work/script"
line 127 "$work/script" "the interpreter of $work/script is not there: /no/such"
cat >"$work/script" <<'SCRIPT'
#! /bin/sh -e
echo "$1"
SCRIPT
run 0 "$work/script" '* a'
prints '* a'
printf 'echo "no first line"\n' >"$work/script"
run 0 "$work/script"
(cd "$work" && expect 0 env PATH=":$PATH" "$hakmem" run --lib "$lib" -- script && exit $failed) || failed=1
expect 0 "$hakmem" run --lib "$lib" printf %s --help
prints --help
run 0 grep -c -E '/libhakmem\.so' /proc/self/maps

# Without "--", and with options in the other form.
expect 0 "$hakmem" run "--lib=$lib" printenv LD_PRELOAD
prints "$(readlink -f "$(dirname "$lib")")/libhakmem.so"

# An existing preload stays, behind ours.
expect 0 env LD_PRELOAD=libm.so.6 "$hakmem" run --lib "$lib" -- printenv LD_PRELOAD
prints "$(readlink -f "$(dirname "$lib")")/libhakmem.so:libm.so.6"

# Before 2.34 glibc has threads and dlsym in libraries of their own: programs without them get them, for the scavenger.
mkdir "$work/old"
printf '#!/bin/sh\necho glibc 2.31\n' >"$work/old/getconf"
chmod +x "$work/old/getconf"
expect 0 env PATH="$work/old:$PATH" "$hakmem" run --lib "$lib" -- printenv LD_PRELOAD
prints "$(readlink -f "$(dirname "$lib")")/libhakmem.so:libpthread.so.0:libdl.so.2"

# The profile, and nothing else, is added to the environment.
expect 0 "$hakmem" run --profile throughput --lib "$lib" -- printenv HAKMEM_PROFILE
prints throughput
expect 0 "$hakmem" run --profile hardened --lib "$lib" -- true
says err "not hardened"
env -i PATH="$PATH" lib=1 root=2 status=3 command=4 "$hakmem" run --lib "$lib" -- env |
    grep -vE '^(PWD|OLDPWD|SHLVL|_)=' | LC_ALL=C sort >"$work/environment"
printf '%s\n' "LD_PRELOAD=$(readlink -f "$(dirname "$lib")")/libhakmem.so" "PATH=$PATH" command=4 lib=1 root=2 \
    status=3 | LC_ALL=C sort | diff - "$work/environment" || fail "the environment changed"

# Standard input passes through.
echo text | "$hakmem" run --lib "$lib" -- cat >"$work/out"
prints text

# From a folder that cannot be written, through a symlink, with a relative library.
ln -s "$hakmem" "$work/link"
ln -s link "$work/second"
mkdir "$work/closed"
chmod 555 "$work/closed"
cd "$work/closed"
expect 5 "$work/second" run --lib "$lib" -- sh -c 'exit 5'
cd "$(dirname "$lib")"
expect 0 "$work/link" run --lib libhakmem.so -- true

# A path with a space cannot stand in LD_PRELOAD; the library is loaded all the same.
mkdir "$work/with space"
cp "$lib" "$work/with space/libhakmem.so"
expect 0 "$hakmem" run --lib "$work/with space/libhakmem.so" -- grep -c 'with space/libhakmem.so' /proc/self/maps
[ -s "$work/err" ] && fail "noise: $(cat "$work/err")"
exit $failed
