#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does a set-uid program ignore HAKMEM_OPTIONS and HAKMEM_PROFILE? Is it never sampled? The probe,
# linked with hakmem, runs as it is (must warn about a bad option, and sample, as it asks for itself)
# and as a copy set-uid to nobody (must not).
# usage: setuid_test.sh LINKED_PROBE
set -u
probe=$1
skip() { echo "skip: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root to make a set-uid copy"
id nobody >/dev/null 2>&1 || skip "there is no user nobody"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$probe" "$folder/probe" && chown nobody "$folder/probe" && chmod 4755 "$folder/probe" || exit 1

# A mount with nosuid or a container without the privilege would make the test pass for nothing.
cp "$(command -v id)" "$folder/id" && chown nobody "$folder/id" && chmod 4755 "$folder/id"
[ "$("$folder/id" -u)" = "$(id -u nobody)" ] || skip "set-uid has no effect in $folder"

samples() { "$@" profile | sed -n 's/^"samples":{"live":[0-9]*,"taken":\([0-9]*\),.*/\1/p'; }
plain=$(samples "$probe") && secure=$(samples "$folder/probe") || exit 1
echo "samples: plain $plain, set-uid $secure"
[ "${plain:-0}" -gt 100 ] || { echo "FAILED: the plain probe was not sampled"; exit 1; }
[ "$secure" = 0 ] || { echo "FAILED: the set-uid probe was sampled"; exit 1; }

export HAKMEM_OPTIONS='bogus:1,force_libc:1' HAKMEM_PROFILE='no-such-profile'
plain=$("$probe" 2>&1) || { echo "FAILED: the plain probe ended with status $?"; exit 1; }
secure=$("$folder/probe" 2>&1) || { echo "FAILED: the set-uid probe ended with status $?"; exit 1; }
printf 'plain:\n%s\nset-uid:\n%s\n' "$plain" "$secure"
case $plain in
*hakmem:*bogus*) ;;
*) echo "FAILED: the plain probe did not read its options"; exit 1 ;;
esac
case $secure in
*hakmem:*) echo "FAILED: the set-uid probe read its environment"; exit 1 ;;
"usable 24") echo "FAILED: force_libc took effect in the set-uid probe"; exit 1 ;;
"usable "*) echo "ok     setuid_program_ignores_its_environment" ;;
*) echo "FAILED: unexpected output"; exit 1 ;;
esac
