#!/bin/sh
# SPDX-License-Identifier: MIT
# Missing build tools: installed with apt by root, named in one message otherwise. apt is a double here.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"

# A tree that is never up to date, and a PATH without compiler, cmake and ninja.
mkdir -p "$work/tree" "$work/bin"
mkdir -p "$work/tree/tools"
cp "$HAKMEM_SOURCE/hakmem" "$work/tree/"
cp "$HAKMEM_SOURCE/tools/launch.sh" "$work/tree/tools/"
for tool in sh dirname readlink mkdir find mktemp rm mv cat flock grep printf getconf basename sed cut; do
    found=$(command -v $tool) && case $found in
    /*) ln -s "$found" "$work/bin/$tool" ;;
    esac
done

double() { # NAME BODY
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# shellcheck disable=SC2317 # called through expect
lib() {
    env -i PATH="$work/bin" "$work/tree/hakmem" lib
}

double id 'echo 1000'
expect 1 lib
says err "missing build tools; install what Debian calls:"

double apt-get "echo \"\$@\" >>'$work/apt.log'"
expect 1 lib
says err "sudo apt-get install -y --no-install-recommends"
for package in gcc g++ cmake ninja-build python3; do
    says err " $package"
done
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one message: $(cat "$work/err")"
[ -s "$work/out" ] && fail "lib printed something"
[ -e "$work/apt.log" ] && fail "apt was called by a user who is not root"

double id 'echo 0'
expect 1 lib
grep -q 'update' "$work/apt.log" || fail "apt-get update was not called"
grep -q 'install -y --no-install-recommends.* gcc .*cmake ninja-build' "$work/apt.log" ||
    fail "apt-get install was not called: $(cat "$work/apt.log")"
for package in clang qemu-user libcmocka-dev shellcheck; do
    grep -q "$package" "$work/apt.log" && fail "$package is not needed to build the library"
done

# How much that is comes before it is installed.
double apt-get "case \" \$* \" in
*' --assume-no '*) echo 'Need to get 61.5 MB of archives.'
    echo 'After this operation, 240 MB of additional disk space will be used.' ;;
*) echo \"\$@\" >>'$work/apt.log' ;;
esac"
: >"$work/apt.log"
expect 1 env -i HOME="$work/home" PATH="$work/bin" "$work/tree/hakmem" run -- sh -c 'exit 3'
says err "hakmem: Need to get 61.5 MB of archives"
says err "hakmem: After this operation, 240 MB of additional disk space will be used"
for package in clang cmocka redis strace; do
    grep -q "$package" "$work/apt.log" && fail "$package is not needed to run a program"
done

# Nothing is installed to run a program where a library is: of a package, or built before.
: >"$work/apt.log"
major=$(sed -n 's/^#define HAK_VERSION_MAJOR //p' "$HAKMEM_SOURCE/include/hakmem/hakmem.h")
mkdir -p "$work/home/.local/lib/hakmem/hardened" "$work/tree/include/hakmem" "$work/tree/build/release" "$work/tree/src/conf"
cp "$HAKMEM_SOURCE/include/hakmem/hakmem.h" "$work/tree/include/hakmem"
cp "$HAKMEM_SOURCE/src/conf/presets.def" "$work/tree/src/conf"
ln -s "$(command -v sort)" "$(command -v tr)" "$work/bin"
installed=$work/home/.local/lib/libhakmem.so.$major
runs_on() { # LIBRARY WORDS...: `run`, on that file, with a line that says so
    library=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands it
    expect 3 env -i HOME="$work/home" PATH="$work/bin" "$work/tree/hakmem" run "$@" sh -c 'echo "$LD_PRELOAD"; exit 3'
    prints "$library"
    grep -v 'ERROR: ld.so' "$work/err" >"$work/words"
    [ "$(wc -l <"$work/words")" -eq 1 ] || fail "more than one message: $(cat "$work/words")"
    says err " takes: gcc g++ "
    [ ! -s "$work/apt.log" ] || fail "apt was called: $(cat "$work/apt.log")"
}
: >"$installed"
: >"$work/home/.local/lib/hakmem/hardened/libhakmem.so.$major"
runs_on "$installed"
says err "hakmem: run: on the installed $installed; to build that of this clone takes: gcc"
runs_on "$work/home/.local/lib/hakmem/hardened/libhakmem.so.$major" --profile hardened
: >"$work/tree/build/release/libhakmem.so"
runs_on "$work/tree/build/release/libhakmem.so"
says err "hakmem: run: on the library of an earlier build; to build it anew takes: gcc"
rm -r "$work/tree/build" "${work:?}/home"

# A clone of another user's, where we may not write: one line of ours, from whatever builds.
mkdir -p "$work/tree/build"
: >"$work/tree/build/.lock"
chmod 755 "$work"
chmod -R a-w "$work/tree"
other=
[ "$("$(command -v id)" -u)" != 0 ] || other='setpriv --reuid=65534 --regid=65534 --clear-groups'
double id 'echo nobody'
for words in lib build 'build tsan' 'run -- sh' test 'fuzz 1' clean; do
    case $words in
    fuzz*) mkdir -p "$work/tree/test/fuzz/corpus/api" ;;
    esac
    # shellcheck disable=SC2086 # lists of words
    expect 1 $other env -i PATH="$work/bin" "$work/tree/hakmem" $words
    says err "where user nobody may not write"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$words: more than one message: $(cat "$work/err")"
done
chmod -R u+w "$work/tree"

# Without the program that locks: the one line, not the shell's.
rm "$work/bin/flock" "$work/bin/apt-get"
double id 'echo 1000'
for words in lib 'build tsan' 'run -- sh' test; do
    # shellcheck disable=SC2086 # a list of words
    expect 1 env -i PATH="$work/bin" "$work/tree/hakmem" $words
    says err " util-linux"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$words: more than one message: $(cat "$work/err")"
done

double id 'echo 0'
double apt-get 'exit 100'
expect 1 lib
says err "apt-get could not install"
# A page of fit needs no environment where there is plotly.
double python3 "case \"\$*\" in *'import plotly'*) ;; *) echo \"\$*\" ;; esac"
expect 0 env -i PATH="$work/bin" "$work/tree/hakmem" fit --html page.html -- true
prints "-B $work/tree/tools/command.py fit --html page.html -- true"
exit $failed
