#!/bin/sh
# SPDX-License-Identifier: MIT
# The installed command: options, check, enable, translate, top and map, with Python's standard library alone; what it says
# where something is missing; its manual and completions.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
unset HAKMEM_OPTIONS HAKMEM_PROFILE
expect 0 cmake --install "$HAKMEM_BUILD" --prefix "$work/prefix"
hakmem=$work/prefix/bin/hakmem
chmod -R a-w "$work/prefix" # root writes all the same: nothing may, see the end
expect 0 "$hakmem" options
names=$(sed -n 's/^HAK_OPTION(\([a-z_]*\),.*/\1/p' "$HAKMEM_SOURCE/src/base/options.def")
for name in $names; do
    says out "  $name "
    grep -q "$name" "$work/prefix/share/man/man7/hakmem-options.7" || fail "no $name in hakmem-options(7)"
done
awk 'length > 110' "$work/out" | grep -q . && fail "lines of options are not wrapped"
expect 0 env HAKMEM_PROFILE=low-memory HAKMEM_OPTIONS=retain_min:2m "$hakmem" options retain_min
[ "$(head -n 1 "$work/out")" = "The environment: other than the default" ] || fail "the environment does not come first"
says out "retain_min      2m        default 32m; from HAKMEM_OPTIONS"
says out "bin_bytes       16k       default 128k; from profile low-memory"
expect 0 env HAKMEM_OPTIONS=memory:most,cache:2m "$hakmem" options cache
says out "cache           2m        default 4m; from HAKMEM_OPTIONS"
says out "bin_bytes       256k      default 128k; from memory:most"
expect 2 "$hakmem" options retain_mim
says err "did you mean retain_min?"
expect 0 "$hakmem" options --json
python3 -c 'import json, sys; json.load(sys.stdin)["options"][0]["name"]' <"$work/out" || fail "options --json"

# A running program: loaded, linked statically, and not at all.
start "$hakmem" run --options cache:1m
expect 0 "$hakmem" check "$pid"
says out "is on hakmem $("$hakmem" --version | cut -d' ' -f2)"
says out "by       LD_PRELOAD="
says out "  cache:1m  from HAKMEM_OPTIONS"
if may_observe; then
    says out "serves   yes"
fi
expect 0 "$hakmem" check --json "$pid"
expect 0 "$hakmem" options "$pid" cache
says out "cache  1m        default 4m; from HAKMEM_OPTIONS"
# -S: without packages, however many the machine has.
if may_observe; then
    expect 0 python3 -S "$work/prefix/share/hakmem/view.py" top --once --interval 0.1 "$pid"
    says out "thread name"
    expect 0 python3 -S "$work/prefix/share/hakmem/view.py" map "$pid"
    says out "a letter per 64 KiB"
fi
expect 2 python3 -S "$work/prefix/share/hakmem/view.py" map --svg "$work/map.svg" "$pid"
says err "need the Python package"
expect 1 python3 -S "$work/prefix/share/hakmem/view.py" map -- expr 1 = 2
says out "at its end"
stop
start "$hakmem" run
expect 0 "$hakmem" check "$pid"
if may_observe; then
    says out "all defaults, in force now"
    expect 0 "$hakmem" stats "$pid" # no option is needed
    expect 2 "$hakmem" tell "$pid" trim --wait 0
    says err "has not answered yet: it does it when it next allocates"
fi
stop
expect 0 "$hakmem" tell --help
says out "tell PID trim|flush|reset"
expect 1 "$hakmem" tell
says err "hakmem-observe: tell: a PID and a request are wanted: trim, flush, reset, rate BYTES, option NAME:VALUE"
expect 1 "$hakmem" tell $$ trmi
says err "hakmem-observe: tell: unknown request 'trmi' (did you mean trim?)"
start env
expect 1 "$hakmem" check "$pid"
says out "is not on hakmem"
expect 2 "$hakmem" stats "$pid"
says err "does not run on hakmem; start it by hakmem run -- PROGRAM"
stop

# How it came in is not guessed: a program that overwrites its environment for a title, as redis does; links; dlopen.
cat >"$work/titled.py" <<'SCRIPT'
import os
import sys
fields = open("/proc/self/stat", encoding="utf-8").read().rpartition(")")[2].split()
begin, end = int(fields[47]), int(fields[48])
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(begin)
    memory.write(bytes(end - begin))
open(sys.argv[1], "w").write("\n")
open(sys.argv[2]).read()
SCRIPT
started() { # COMMAND...: as start does, with a command of its own that gets the two names
    [ -e "$work/ready" ] || mkfifo "$work/ready" "$work/end"
    "$@" "$work/ready" "$work/end" &
    pid=$!
    read -r _ <"$work/ready"
}
started "$hakmem" run --options cache:1m -- python3 "$work/titled.py"
expect 0 "$hakmem" check "$pid"
says out "by       LD_PRELOAD, most likely: nothing in the process is linked with it, and the program has overwritten its env"
if may_observe; then
    says out "options  in force now, but for texts: the program has overwritten its environment"
    says out "cache:1m  from its start, or later"
    expect 0 "$hakmem" options "$pid" cache
    says out "cache  1m        default 4m; from its start, or later"
fi
stop
cat >"$work/waits.c" <<'SOURCE'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    if (argc > 3) {
        dlopen(argv[1], RTLD_NOW);
        argv++;
    }
    void *volatile block = malloc(100);
    free(block);
    FILE *ready = fopen(argv[1], "w");
    fputs("\n", ready);
    fclose(ready);
    return fgetc(fopen(argv[2], "r")) == 0;
}
SOURCE
echo 'void *malloc(unsigned long); void *middle(void) { return malloc(1); }' >"$work/middle.c"
"${CC:-cc}" -o "$work/waits" "$work/waits.c" -ldl
started "$work/waits" "$work/prefix/lib/libhakmem.so.0"
expect 0 "$hakmem" check "$pid"
says out "by       the program has loaded it while it ran (dlopen)"
stop
"${CC:-cc}" -o "$work/linked" "$work/waits.c" -Wl,--no-as-needed -L"$work/prefix/lib" -lhakmem -ldl -Wl,-rpath,"$work/prefix/lib"
started "$work/linked"
expect 0 "$hakmem" check "$pid"
says out "by       the program is linked with it"
stop
"${CC:-cc}" -shared -fPIC -o "$work/libmiddle.so" "$work/middle.c" -Wl,--no-as-needed -L"$work/prefix/lib" -lhakmem \
    -Wl,-rpath,"$work/prefix/lib"
"${CC:-cc}" -o "$work/uses" "$work/waits.c" -Wl,--no-as-needed -L"$work" -lmiddle -ldl -Wl,-rpath,"$work"
started "$work/uses"
expect 0 "$hakmem" check "$pid"
says out "by       libmiddle.so, which the program uses, is linked with it"
stop
start env LD_PRELOAD="$work/prefix/lib/libhakmem.so.9" 2>/dev/null
expect 1 "$hakmem" check "$pid"
says out "but the library is not loaded"
stop
expect 2 "$hakmem" check 999999999
says err "there is no process 999999999"
expect 2 "$hakmem" check
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"

expect 2 "$hakmem" explian
says err "unknown command 'explian' (did you mean explain?); there are: run ps "
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
# What is no number is no PID, in one line.
for word in abc 1x -1 ٣ 1.5 ''; do
    expect 2 "$hakmem" check -- "$word"
    says err "hakmem: check: '$word' is no PID"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
done
for command in stats explain map profile 'top --once'; do
    # shellcheck disable=SC2086 # words
    expect 2 python3 -S "$work/prefix/share/hakmem/view.py" $command abc
    says err "hakmem: abc is neither a PID nor a core file"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
done

# Reports of run, into a file or not.
expect 0 "$hakmem" run --report exit "$work/report" -- true
says report "process"
expect 0 "$hakmem" run --report exit -- true
says err "RSS is"
expect 0 "$hakmem" run --report exit true
says err "RSS is"
expect 3 "$hakmem" run --report exit -- sh -c 'expr 1 + 1; expr 2 + 2; exit 3' # one report, and a line about the other
[ "$(grep -c 'RSS is' "$work/err")" -eq 1 ] || fail "not one report: $(cat "$work/err")"
says err "left a report, too; --report exit FILE writes all"
expect 143 "$hakmem" run --report exit -- sh -c 'kill -TERM $$'
says err "sh left no report (ended by SIGTERM)"

# enable and disable: with a systemctl of our own, and without any.
mkdir "$work/bin" "$work/home"
cat >"$work/bin/systemctl" <<SCRIPT
#!/bin/sh
echo "\$@" >>"$work/calls"
if [ -e "$work/offline" ]; then
    case " \$* " in
    *" is-system-running "*) echo offline ;;
    *) echo "System has not been booted with systemd as init system (PID 1). Can't operate." >&2 ;;
    esac
    exit 1
fi
case " \$* " in
*" cat "*gone*) echo "No files found for gone.service." >&2; exit 1 ;;
*" cat "*odd*) echo "Failed to connect to bus: odd" >&2; exit 1 ;;
*" show "*) echo 'A=1 LD_PRELOAD=/usr/lib/libother.so B=2' ;;
esac
SCRIPT
chmod +x "$work/bin/systemctl"
unit() { # STATUS WORDS...
    wanted_status=$1
    shift
    expect "$wanted_status" env PATH="$work/bin:$PATH" XDG_CONFIG_HOME="$work/home" "$hakmem" "$@" </dev/null
}
drop=$work/home/systemd/user/web.service.d/hakmem.conf
unit 2 enable --user web
says err "--yes"
[ ! -e "$drop" ] || fail "written without an answer"
says out "Environment=LD_PRELOAD=$work/prefix/lib/libhakmem.so.0:/usr/lib/libother.so"
unit 0 enable --user web --yes --options 'report:exit,report_file:/tmp/%p' --profile low-memory
grep -qxF 'Environment="HAKMEM_OPTIONS=report:exit,report_file:/tmp/%%p"' "$drop" || fail "options: $(cat "$drop")"
grep -qxF 'Environment=HAKMEM_PROFILE=low-memory' "$drop" || fail "profile: $(cat "$drop")"
grep -q -- '--user daemon-reload' "$work/calls" || fail "no daemon-reload"
unit 2 enable --user gone --yes
says err "there is no unit gone.service"
unit 2 enable --user odd --yes
says err "systemctl cat odd.service: Failed to connect to bus: odd"
unit 2 enable --user web --yes --options nosuch:1
unit 2 enable ../etc --yes
unit 0 disable --user web
[ ! -e "$work/home/systemd/user/web.service.d" ] || fail "disable leaves something"
unit 2 disable --user web
unit 0 enable --user web --yes
: >"$work/offline"
unit 0 disable --user web
says out "systemd does not run here: web.service follows once it does"
for words in "enable web" "enable --user web --yes"; do
    # shellcheck disable=SC2086 # words
    unit 2 $words
    says err "hakmem: systemd does not run here: without systemd set LD_PRELOAD=$work/prefix/lib/libhakmem.so.0 in"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
done
rm "$work/offline"
mkdir -p "$(dirname "$drop")"
echo mine >"$drop"
unit 2 disable --user web
says err "left alone"
mkdir "$work/image"
expect 0 "$hakmem" enable web --yes --root "$work/image"
[ -s "$work/image/etc/systemd/system/web.service.d/hakmem.conf" ] || fail "no drop-in in the image"
mkdir "$work/few"
for tool in sh dirname readlink env; do ln -s "$(command -v $tool)" "$work/few/$tool"; done
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$work/few/python3"
expect 2 env PATH="$work/few" "$hakmem" enable web
says err "there is no systemctl here"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than a line: $(cat "$work/err")"
rm "$work/few/python3"
for word in ps options check translate top; do
    expect 2 env PATH="$work/few" "$hakmem" $word 1
    says err "$word needs python3"
done
expect 0 env PATH="$work/few" "$hakmem" run -- env
if unshare -m true 2>/dev/null; then
    for word in ps "check 1" "stats 1"; do
        # shellcheck disable=SC2086 # words
        expect 2 unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$hakmem" $word
        says err "/proc is not mounted"
    done
fi

expect 0 env MIMALLOC_VERBOSE=1 "$hakmem" translate
prints "HAKMEM_OPTIONS=show:1
#   verbose 1: show:1"

# Manual and completions.
man=$work/prefix/share/man
for word in $("$hakmem" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort -u); do
    grep -q "$word" "$man/man1/hakmem.1" || fail "no $word in hakmem(1)"
    grep -q "$word" "$work/prefix/share/zsh/site-functions/_hakmem" || fail "zsh completes no $word"
    grep -q "$word" "$work/prefix/share/fish/vendor_completions.d/hakmem.fish" || fail "fish completes no $word"
done
for word in $("$work/prefix/bin/hakmem-observe" 2>&1 | sed -n 's/^  \([a-z-]*\) .*/\1/p' | sort -u); do
    grep -q "${word#--}" "$man/man1/hakmem-observe.1" || fail "no $word in hakmem-observe(1)"
    for file in zsh/site-functions/_hakmem-observe fish/vendor_completions.d/hakmem-observe.fish \
        bash-completion/completions/hakmem-observe; do
        grep -q -e "${word#--}" "$work/prefix/share/$file" || fail "$file completes no $word"
    done
done
functions=$(sed -n 's/.*[ *]\(hak_[a-z_]*\)(.*HAK_NOTHROW;/\1/p' "$HAKMEM_SOURCE/include/hakmem/hakmem.h")
[ -n "$functions" ] || fail "no functions in the header"
for function in $functions; do
    grep -q "$function(" "$man/man3/hakmem.3" || fail "no $function in hakmem(3)"
done
if command -v groff >/dev/null; then
    for file in "$man"/man?/*; do
        groff -man -ww -z "$file" 2>"$work/err" || fail "$file is no page"
        [ ! -s "$work/err" ] || fail "$file: $(cat "$work/err")"
    done
fi
if command -v bash >/dev/null; then
    # shellcheck disable=SC2016 # bash expands it
    expect 0 env PATH="$work/prefix/bin:$PATH" bash -c '. "$1"; COMP_WORDS=(hakmem expl) COMP_CWORD=1; _hakmem; echo "${COMPREPLY[@]}"
        COMP_WORDS=(hakmem run --profile lo) COMP_CWORD=3; _hakmem; echo "${COMPREPLY[@]}"' bash \
        "$work/prefix/share/bash-completion/completions/hakmem"
    prints "explain
low-memory"
fi
chmod -R u+w "$work/prefix"
[ -z "$(find "$work/prefix" -name __pycache__)" ] || fail "the command writes into the prefix"
exit $failed
