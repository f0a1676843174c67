#!/bin/sh
# SPDX-License-Identifier: MIT
# `run` of a program that the library cannot be loaded into: one line says why and the program runs as it is; with
# --strict it does not start.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem
lib=$HAKMEM_LIB

# misfit STATUS PROGRAM REASON: the status without --strict
misfit() {
    expect "$1" "$hakmem" run --lib "$lib" -- "$2"
    [ "$(head -n 1 "$work/err")" = "hakmem: run: $2 $3; it runs as it is" ] || fail "no such line: $(cat "$work/err")"
    expect 126 "$hakmem" run --strict --lib "$lib" -- "$2"
    [ "$(cat "$work/err")" = "hakmem: run: $2 $3" ] || fail "--strict says: $(cat "$work/err")"
}

echo 'int main(void) { return 9; }' >"$work/program.c"
for form in -static -static-pie; do
    if $CC $form -o "$work/program" "$work/program.c" 2>"$work/err"; then
        misfit 9 "$work/program" "is linked statically, so nothing can be preloaded into it"
    else
        echo "$form: not linked: $(tail -n 1 "$work/err")"
    fi
done

# The machine's number, in the header of a program that is like others.
$CC -o "$work/program" "$work/program.c"
expect 9 "$hakmem" run --strict --lib "$lib" -- "$work/program"
[ -s "$work/err" ] && fail "noise: $(cat "$work/err")"
here=$(od -An -v -tu2 -j18 -N2 "$work/program" | tr -d ' ')
case $here in
62) here=x86-64 other='\267\0' name=aarch64 ;;
183) here=aarch64 other='\76\0' name=x86-64 ;;
esac
cp "$work/program" "$work/foreign"
# shellcheck disable=SC2059 # escapes
printf "$other" | dd of="$work/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
misfit 126 "$work/foreign" "is a program for $name (64 bits), and the library for $here (64 bits)"
printf '\1' | dd of="$work/foreign" bs=1 seek=4 conv=notrunc 2>/dev/null
printf '\3\0' | dd of="$work/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
misfit 126 "$work/foreign" "is a program for i386 (32 bits), and the library for $here (64 bits)"

# Of a script, what counts is its interpreter.
printf '#!%s\n' "$work/foreign" >"$work/script"
chmod +x "$work/script"
expect 126 "$hakmem" run --strict --lib "$lib" -- "$work/script"
says err "hakmem: run: $work/foreign is a program for i386"

# Neither a header that ends early nor one of nonsense stops a start that would succeed.
for bytes in '\177ELF' '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0' 'echo 1'; do
    # shellcheck disable=SC2059 # escapes
    printf "$bytes" >"$work/short"
    chmod +x "$work/short"
    "$hakmem" run --lib "$lib" -- "$work/short" >/dev/null 2>"$work/err" || true
    grep -q '^hakmem: run' "$work/err" && fail "a word of ours: $(cat "$work/err")"
done

# The system preloads nothing into a program that changes its user.
if [ "$(id -u)" -eq 0 ]; then
    cp "$work/program" "$work/other-user"
    chown 65534 "$work/other-user"
    chmod 4755 "$work" "$work/other-user"
    misfit 9 "$work/other-user" "changes its user (set-user-ID), so the system preloads nothing into it"
fi
exit $failed
