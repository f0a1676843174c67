#!/bin/sh
# SPDX-License-Identifier: MIT
# `run` of a program that the library cannot be loaded into: one line says why and the program runs as it is; with
# --strict it does not start.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem
lib=$HAKMEM_LIB

# misfit STATUS PROGRAM REASON: the status without --strict; "-": any, as an emulator may be there
misfit() {
    status=0
    "$hakmem" run --lib "$lib" -- "$2" >/dev/null 2>"$work/err" || status=$?
    [ "$1" = - ] || [ "$status" -eq "$1" ] || fail "$2: status $status"
    [ "$(head -n 1 "$work/err")" = "hakmem: run: $2 $3; it runs as it is, and what it starts on hakmem where that can be" ] ||
        fail "no such line: $(cat "$work/err")"
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

# What a static program starts has the library; so has what the loader is told to load.
cat >"$work/starts.c" <<'SOURCE'
#include <unistd.h>
int main(int argc, char **argv) { return argc > 1 ? execv(argv[1], argv + 1) : 9; }
SOURCE
if $CC -static -o "$work/starts" "$work/starts.c" 2>/dev/null; then
    "$hakmem" run --lib "$lib" -- "$work/starts" /bin/grep -c libhakmem /proc/self/maps >"$work/out" 2>/dev/null || true
    [ "$(cat "$work/out")" -gt 0 ] || fail "a program that a static one starts is not on hakmem"
fi
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
    [ ! -x "$loader" ] || {
        expect 0 "$hakmem" run --strict --lib "$lib" -- "$loader" /bin/grep -c libhakmem /proc/self/maps
        [ ! -s "$work/err" ] || fail "noise of a loader: $(cat "$work/err")"
    }
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
misfit - "$work/foreign" "is a program for $name (64 bits), and the library for $here (64 bits)"
printf '\1' | dd of="$work/foreign" bs=1 seek=4 conv=notrunc 2>/dev/null
printf '\3\0' | dd of="$work/foreign" bs=1 seek=18 conv=notrunc 2>/dev/null
misfit - "$work/foreign" "is a program for i386 (32 bits), and the library for $here (64 bits)"

# Of a script, what counts is its interpreter.
printf '#!%s\n' "$work/foreign" >"$work/script"
chmod +x "$work/script"
expect 126 "$hakmem" run --strict --lib "$lib" -- "$work/script"
says err "hakmem: run: $work/foreign is a program for i386"
for line in "env foreign" "env -S A=1 foreign" "env -S -i A=1 B=2 $work/foreign"; do # or what env starts
    printf '#!/usr/bin/%s\n' "$line" >"$work/script"
    expect 126 env PATH="$work:$PATH" "$hakmem" run --strict --lib "$lib" -- "$work/script"
    says err "hakmem: run: $work/foreign is a program for i386"
done
for line in "env true" "env no_such_program"; do
    printf '#!/usr/bin/%s\n' "$line" >"$work/script"
    "$hakmem" run --strict --lib "$lib" -- "$work/script" >/dev/null 2>"$work/err" || true
    grep -qE 'hakmem: run|parameter not set|launch.sh' "$work/err" && fail "a word of ours: $(cat "$work/err")"
done

# Neither a header that ends early nor one of nonsense stops a start that would succeed.
for bytes in '' '\177ELF' '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0' 'echo 1'; do
    # shellcheck disable=SC2059 # escapes
    printf "$bytes" >"$work/short"
    chmod +x "$work/short"
    "$hakmem" run --lib "$lib" -- "$work/short" >/dev/null 2>"$work/err" || true
    grep -qE 'hakmem: run|parameter not set|^od:|launch.sh' "$work/err" && fail "a word of ours: $(cat "$work/err")"
done

# The system preloads nothing into a program that changes its user.
if [ "$(id -u)" -eq 0 ]; then
    cp "$work/program" "$work/other-user"
    chown 65534 "$work/other-user"
    chmod 755 "$work"
    chmod 4755 "$work/other-user"
    misfit 9 "$work/other-user" "changes its user or group, so the system preloads nothing into it"
    chown 0:65533 "$work/other-user"
    chmod 2755 "$work/other-user"
    misfit 9 "$work/other-user" "changes its user or group, so the system preloads nothing into it"
fi

# Nor, but for root, into one with file capabilities; into one that may not be read it might. A tree that others may read.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p "$work/tree/tools"
    cp "$hakmem" "$work/tree"
    cp "$HAKMEM_SOURCE/tools/launch.sh" "$work/tree/tools"
    cp "$lib" "$work/libhakmem.so"
    cat >"$work/as_nobody" <<SCRIPT
#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$work/tree/hakmem" "\$@"
SCRIPT
    chmod -R a+rX "$work/tree" "$work/libhakmem.so"
    chmod 755 "$work/as_nobody"
    root_command=$hakmem
    hakmem=$work/as_nobody
    lib=$work/libhakmem.so
    cp "$work/program" "$work/unreadable"
    chmod 711 "$work/unreadable"
    misfit 9 "$work/unreadable" "may not be read, so nobody knows whether the library can be loaded into it"
    cp "$work/program" "$work/capable"
    chmod 755 "$work/capable"
    if python3 -c 'import os, struct, sys
os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))' "$work/capable"; then
        said="has file capabilities (setcap), so the system preloads nothing into it"
        misfit 9 "$work/capable" "$said"
        for tool in sh id od python3 dirname basename readlink tr head setpriv; do # as where there is no getcap
            mkdir -p "$work/few"
            ln -s "$(command -v $tool)" "$work/few/$tool"
        done
        expect 126 env PATH="$work/few" "$hakmem" run --strict --lib "$lib" -- "$work/capable"
        says err "$said"
        expect 9 "$root_command" run --strict --lib "$lib" -- "$work/capable"
        [ ! -s "$work/err" ] || fail "root gains nothing by them: $(cat "$work/err")"
    else
        echo "file capabilities cannot be given here"
    fi
    expect 9 "$hakmem" run --strict --lib "$lib" -- "$work/program"
    [ ! -s "$work/err" ] || fail "noise: $(cat "$work/err")"
fi
exit $failed
