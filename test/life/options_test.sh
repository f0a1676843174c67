#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What does a user see of HAKMEM_OPTIONS: a warning line for unknown words and bad values, the table
# on `help`, the effective values on `show`, libc's malloc with force_libc:1, a stop with strict:1? Each bad value:
# test/unit/conf_*, test/fuzz/conf_fuzz.c.
# usage: options_test.sh PROBE    (HAKMEM_LIB is preloaded)
set -u
probe=$1
[ -n "${HAKMEM_LIB:-}" ] || { echo "skip: HAKMEM_LIB is not set"; exit 77; }
out=$(mktemp) && err=$(mktemp) || exit 1
trap 'rm -f "$out" "$err"' EXIT
failures=0

# run OPTIONS [PROFILE]: the probe under these; sets $status
run() {
    env HAKMEM_OPTIONS="$1" HAKMEM_PROFILE="${2:-}" LD_PRELOAD="$HAKMEM_LIB" \
        "$probe" >"$out" 2>"$err"
    status=$?
}

fail() {
    echo "FAILED: $1"
    echo "  status $status, stdout:"
    sed 's/^/    /' "$out"
    echo "  stderr:"
    sed 's/^/    /' "$err"
    failures=$((failures + 1))
}

check() { # check WHAT COMMAND…
    what=$1
    shift
    if "$@"; then echo "ok     $what"; else fail "$what"; fi
}

works() { [ "$status" = 0 ] && grep -q '^usable [0-9]' "$out"; }
silent() { works && [ ! -s "$err" ]; }
one_warning() { # one line starting with hakmem:, with every given word in it
    works && [ "$(wc -l <"$err")" = 1 ] && grep -q '^hakmem: ' "$err" || return 1
    for word in "$@"; do grep -q -e "$word" "$err" || return 1; done
}
lists() { # every given word is in stderr
    works || return 1
    for word in "$@"; do grep -q -e "$word" "$err" || return 1; done
}
stopped() { [ "$status" != 0 ] && grep -q '^hakmem: ' "$err"; }
usable_is() { silent && grep -q "^usable $1\$" "$out"; }
usable_is_not() { silent && ! grep -q "^usable $1\$" "$out"; }

run ''
check options_empty_says_nothing silent
check options_empty_uses_hakmem usable_is_not 200
forced='usable_is 200'
[ "${HAKMEM_FLAVOUR:-}" != musl ] || forced="one_warning force_libc" # its malloc has no second name
run 'force_libc:1'
# shellcheck disable=SC2086 # words
check options_force_libc_uses_libc $forced
run 'force_libc:0'
check options_force_libc_off_uses_hakmem usable_is_not 200
run 'force_libc:1,force_libc:0'
check options_later_key_wins usable_is_not 200
run 'bogus:1'
check options_unknown_key_warns_in_one_line one_warning bogus "'help' lists all"
run 'force_lib:1'
check options_unknown_key_warns_in_one_line_naming_the_nearest one_warning "'force_lib'" 'did you mean force_libc?'
run 'force_libc=1'
# shellcheck disable=SC2086 # words
check options_equals_sign_separates_as_a_colon_does $forced
run 'help'
check options_help_prints_the_table lists force_libc strict show
run 'show:1'
check options_show_prints_effective_values lists force_libc strict
run 'show:1,force_libc:1'
check options_show_names_the_source lists HAKMEM_OPTIONS
run 'show:1' 'low-memory'
check options_show_names_the_profile lists 'profile:low-memory  from HAKMEM_PROFILE' 'bin_bytes:16k  from HAKMEM_PROFILE'
run 'report_file:/tmp/a b:c %p,show:1'
check options_text_is_taken_as_it_stands lists 'report_file:/tmp/a b:c %p  from HAKMEM_OPTIONS'
run 'strict:1'
check options_strict_alone_is_silent silent
run 'bogus:1,strict:1'
check options_strict_makes_an_unknown_key_fatal stopped
run 'force_libc:maybe,strict:1'
check options_strict_makes_a_bad_value_fatal stopped
run '' 'no-such-profile'
check options_unknown_profile_warns_in_one_line one_warning no-such-profile balanced
run '' 'hardened'
if [ "$HAKMEM_FLAVOUR" = hardened ]; then
    check options_profile_of_this_library_is_silent silent
else
    check options_profile_of_another_library_warns_in_one_line_naming_it \
        one_warning 'not hardened' 'hakmem run --profile hardened takes the one that is'
    run 'strict:1' 'hardened'
    check options_strict_makes_the_profile_of_another_library_fatal stopped
fi
for profile in balanced throughput low-memory debug; do
    run '' "$profile"
    check "options_profile_${profile}_is_silent" silent
done
run 'bogus:1' 'debug'
check options_profile_debug_is_strict stopped
[ "$failures" = 0 ]
