#!/bin/sh
# SPDX-License-Identifier: MIT
# Words on the command line: help, and errors that name the valid ones.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"
hakmem=$HAKMEM_SOURCE/hakmem

expect 0 "$hakmem" help
for word in run lib build test fuzz stats top explain map profile tell exporter ps options check enable disable translate fit symbolize docs package release clean help --profile --lib --full --soak --minutes; do
    says out "$word"
done
[ -s "$work/err" ] && fail "help writes to stderr"
expect 0 "$hakmem"
expect 0 "$hakmem" --help

# Each command says its part, whatever else is on the line; what is the program's is not ours.
for command in build lib run test fuzz package release clean docs; do
    expect 0 "$hakmem" $command --help
    says out "  $command"
    [ -s "$work/err" ] && fail "$command --help writes to stderr"
    expect 0 "$hakmem" $command -h
done
expect 0 "$hakmem" run --help
says out "run PROGRAM on hakmem"
says out "P: least, less, balanced, more, most, debug, hardened"
grep -q 'fuzz' "$work/out" && fail "run --help prints more than its part"
expect 0 "$hakmem" help run
says out "run PROGRAM on hakmem"
grep -q 'fuzz' "$work/out" && fail "help run prints more than its part"
expect 2 "$hakmem" help rnu
says err "help: there is no command 'rnu' (did you mean run?); ./hakmem help lists them"
expect 0 "$hakmem" help --help
says out "help [COMMAND]"
"$hakmem" help >/dev/full 2>"$work/err" && fail "help on a full disk ends with 0"
grep -q 'parameter not set' "$work/err" && fail "help on a full disk: $(cat "$work/err")"
expect 0 "$hakmem" test --full --help
says out "--soak: only"
for command in stats top explain map profile ps lab; do
    expect 0 "$hakmem" $command --help
    says out "$command"
done
for command in stats top explain map profile ps; do
    expect 0 "$hakmem" $command -h
    says out "$command"
done
# What stands in a list of options beside the table is in the list, too.
expect 0 "$hakmem" options memory help
says out "  memory  balanced  least, less, balanced, more, most; at start"
says out "  help    -         no value; at start"
expect 0 "$hakmem" options
says out "  memory "
for pair in memry:memory hepl:help MEMORY:memory; do
    expect 2 "$hakmem" options "${pair%:*}"
    says err "there is no option '${pair%:*}'; did you mean ${pair#*:}?"
done
expect 0 env HAKMEM_PROFILE= HAKMEM_OPTIONS=learn:1,memory:less "$hakmem" options # not what has its default nevertheless
says out "  retain_min      8m        default 32m; from memory:less"
grep -qE 'retain_idle .*from|huge_pages .*from|learn .*from' "$work/out" && fail "no differences are listed: $(cat "$work/out")"
# Every option of `profile` is in its help, and those that choose rows are in the text of all commands.
expect 0 python3 -S "$HAKMEM_SOURCE/tools/view.py" profile --help
options=$(grep -oE '^  --[a-z0-9-]+' "$work/out")
expect 0 "$hakmem" profile --help
for option in $options --by --focus --ignore --hide "PID|CORE|FILE.json"; do
    says out "$option"
done
expect 0 "$hakmem" help
for option in --by --focus --ignore --hide --list --sizes --suppressions FILE; do
    says out "$option"
done
version=$(sed -n 's/^#define HAK_VERSION_[A-Z]* //p' "$HAKMEM_SOURCE/include/hakmem/hakmem.h" | paste -sd .)
expect 0 "$hakmem" --version
prints "hakmem $version"

expect 2 "$hakmem" frobnicate
says err "unknown command 'frobnicate'"
says err "build lib run test fuzz lab stats top explain map profile tell exporter ps options check enable disable translate fit symbolize docs package release clean help"
[ -s "$work/out" ] && fail "an error writes to stdout"
grep -q 'did you mean' "$work/err" && fail "frobnicate is near to no command: $(cat "$work/err")"
for pair in explian:explain rnu:run prof:profile chekcs:check buildd:build; do
    expect 2 "$hakmem" "${pair%:*}"
    says err "unknown command '${pair%:*}' (did you mean ${pair#*:}?); there are: build "
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one line: $(cat "$work/err")"
done
for pair in lerning:learning quick:quick-start securty.md:security docs/profilng.md:profiling; do
    expect 2 "$hakmem" docs "${pair%:*}"
    says err "(did you mean ${pair#*:}?); ./hakmem docs lists them"
done
expect 2 "$hakmem" docs frobnicate
says err "there is no page 'frobnicate'; ./hakmem docs lists them"
expect 2 "$hakmem" build frobnicate
says err "release clang debug-audit hardened tsan ubsan aarch64"
expect 2 "$hakmem" build release hardened
expect 2 "$hakmem" lib please
expect 2 "$hakmem" run
says err "no program given"
expect 2 "$hakmem" run --
expect 2 "$hakmem" run --frobnicate -- true
says err "--profile P, --lib PATH, --options TEXT, --report X [FILE], --strict, --"
expect 2 "$hakmem" run --profile -- true
says err "--profile needs a value"
expect 2 "$hakmem" run --profile nope -- true
says err "unknown profile 'nope'; there are: balanced debug hardened least less low-memory more most throughput"
expect 2 "$hakmem" run --profile debgu -- true
says err "unknown profile 'debgu' (did you mean debug?); there are: balanced "
expect 2 "$hakmem" run --reprot exit -- true
says err "unknown option '--reprot' (did you mean --report?); there are: --profile P"
# A report that there is not is said before the program runs.
for words in '--report explian' '--report explian FILE --strict' '--report=explian'; do
    # shellcheck disable=SC2086 # words
    expect 2 "$hakmem" run $words -- touch "$work/ran"
    says err "hakmem: run: unknown report 'explian' (did you mean explain?); there are: exit explain stats json map profile leaks off"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one line: $(cat "$work/err")"
    [ ! -e "$work/ran" ] || fail "the program ran without the report that was asked for"
done
known=$(sed -n 's/^HAK_OPTION(report, CHOICE(\([^)]*\)).*/\1/p' "$HAKMEM_SOURCE/src/base/options.def" | tr -d '",' | tr ' ' '\n' | sort)
[ "$(sed -n 's/^hm_reports="\(.*\)".*/\1/p' "$HAKMEM_SOURCE/tools/launch.sh" | tr ' ' '\n' | sort)" = "$known" ] ||
    fail "the reports of run are not those of the library: $known"
expect 2 "$hakmem" run --profile
expect 2 "$hakmem" run --lib "$work/gone.so" -- true
says err "no library at: $work/gone.so"
expect 2 "$hakmem" test --frobnicate
says err "--full, --soak, --minutes N"
expect 2 "$hakmem" test one two
expect 2 "$hakmem" test ''
says err "the pattern is empty"
expect 2 "$hakmem" test --full --soak
says err "either --full or --soak"
expect 2 "$hakmem" test -- -one two
expect 2 "$hakmem" clean all
expect 2 "$hakmem" fuzz soon
expect 2 "$hakmem" fuzz 1 frobnicate
says err "api conf files remote stack"

# What cannot be made is said at once, before anything is built. In a tree where nothing is.
mkdir "$work/tree" "$work/tree/tools"
cp "$hakmem" "$work/tree"
cp "$HAKMEM_SOURCE/tools/launch.sh" "$work/tree/tools"
for pair in "rnu:unknown command 'rnu' (did you mean run?)" "frobnicate:unknown command 'frobnicate'" "--quick:a command is wanted" ":a command is wanted"; do
    word=${pair%%:*}
    expect 2 "$work/tree/hakmem" lab ${word:+"$word"}
    [ "$(cat "$work/err")" = "hakmem: lab: ${pair#*:}; there are: run ab latency syscalls contention scale attacks health report list peers" ] ||
        fail "lab $word: $(cat "$work/err")"
    [ ! -e "$work/tree/build" ] || fail "lab $word sets something up"
done
expect 2 "$hakmem" package
says err "which kind? There are: deb rpm wheel"
expect 2 "$hakmem" package rmp
says err "unknown kind 'rmp' (did you mean rpm?); there are: deb rpm wheel wheel-musl crate tarball apk"
expect 2 "$hakmem" package deb sparc
says err "unknown machine 'sparc'; there are: x86_64 aarch64"

# A Python that is too old gets one line, from files that every Python 3 can read.
for file in view.py command.py; do
    expect 2 python3 -Bc 'import ast, runpy, sys
ast.parse(open(sys.argv[1], encoding="utf-8").read(), feature_version=(3, 7))
sys.version_info, sys.argv = (3, 8, 1, "final", 0), sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$HAKMEM_SOURCE/tools/$file" ps
    [ "$(cat "$work/err")" = "hakmem: its tools need Python 3.9 or newer, this is 3.8" ] || fail "$file: $(cat "$work/err")"
    ! grep -q '__future__' "$HAKMEM_SOURCE/tools/$file" || fail "$file asks for what Python 3.6 has not"
done
mkdir "$work/bin"
cat >"$work/bin/python3" <<'SCRIPT'
#!/bin/sh
case $2 in
*exit*) exit 1 ;;
*) echo 3.6 ;;
esac
SCRIPT
chmod +x "$work/bin/python3"
expect 1 env PATH="$work/bin:$PATH" "$hakmem" package crate
says err "hakmem: this needs Python 3.9 or newer, and python3 is 3.6"

# Tests of half an hour run when they are asked for, not because a pattern fits.
expect 0 ctest --test-dir "$HAKMEM_BUILD" -N -R _soak
grep -q _soak- "$work/out" && fail "tests of the soak run without being asked for"
expect 0 ctest --test-dir "$HAKMEM_BUILD" -N -C soak -L '^soak$'
says out _soak-
# So do those of the profiles, which know whose they are.
expect 0 ctest --test-dir "$HAKMEM_BUILD" -N
grep -q -- '-throughput$' "$work/out" && fail "tests of profiles run without being asked for"
for profile in throughput low-memory debug; do
    expect 0 ctest --test-dir "$HAKMEM_BUILD" -N -C "$profile" -L '^profile$'
    says out "-$profile"
    grep 'Test .*-release$' "$work/out" | grep -qv preload_setup && fail "tests without a profile run under $profile"
done
exit $failed
