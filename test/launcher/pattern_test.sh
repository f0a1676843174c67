#!/bin/sh
# SPDX-License-Identifier: MIT
# `test PATTERN` builds what the tests that match it need, and nothing in presets where none does.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"

needs() { # WORDS…
    expect 0 "$HAKMEM_SOURCE/tools/tests_need.py" "$HAKMEM_BUILD" "$@"
}

needs -R '^unit_base_bits-'
prints test/unit/unit_base_bits
# What a script runs, and the library it is meant for, which only its environment names.
needs -R '^control_socket-'
prints "hakmem
hakmem_static
test/control/control_program"
# Modules that a program loads by their path.
needs -R '^life_deepbind-'
says out test/life/liblife_deepbind_outer.so
# The Python environment is for those who run in it.
needs -R '^lab_records-'
says out lab
needs -R '^nosuch'
prints ""
# Tests of profiles are known by their names, too.
needs -R '^unit_base_bits-debug$'
prints ""
needs --config debug -R '^api_malloc-debug$'
says out test/api/api_malloc

# A tree in which building is only written down: one preset has a test that matches, the other none.
mkdir -p "$work/tree/tools" "$work/tree/build/release" "$work/tree/build/debug-audit" "$work/bin"
mkdir -p "$work/tree/tools"
cp "$HAKMEM_SOURCE/hakmem" "$work/tree/"
cp "$HAKMEM_SOURCE/tools/launch.sh" "$work/tree/tools/"
double() { # NAME BODY
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
printf 'import sys\nprint("one_target" if sys.argv[1].endswith("release") else "")\n' >"$work/tree/tools/tests_need.py"
double cmake "echo \"\$@\" >>'$work/cmake.log'"
double ctest "exit 0"
for tool in cc c++ ninja pkg-config setarch strace; do
    double $tool 'exit 0'
done
PATH=$work/bin:$PATH CC=cc CXX=c++ expect 1 "$work/tree/hakmem" test --quick '^one_'
grep -q -- '--build build/release .*one_target$' "$work/cmake.log" || fail "not built: $(cat "$work/cmake.log")"
grep -q -- '--build build/debug-audit' "$work/cmake.log" && fail "built for nothing: $(cat "$work/cmake.log")"

# What failed is told again behind all that ran: names, and the end of what each printed.
cp "$HAKMEM_SOURCE/tools/tests_failed.py" "$work/tree/tools/"
cat >"$work/report.xml" <<'EOF'
<testsuite
	tests="2"
	failures="1"
	disabled="0"
	skipped="0"
	>
	<testcase name="one_good" time="0.1" status="run"/>
	<testcase name="one_bad" time="2.25" status="fail">
		<failure message="Timeout"/>
		<system-out>early
late</system-out>
	</testcase>
</testsuite>
EOF
# shellcheck disable=SC2016 # its own words
double ctest 'while [ "$1" != --output-junit ]; do shift; done; cp "'"$work"'/report.xml" "$2"'
PATH=$work/bin:$PATH CC=cc CXX=c++ expect 1 "$work/tree/hakmem" test --quick '^one_'
says out 'failed: one_bad, 2.2 s, Timeout'
says out '    late'
says out '1 passed, 1 failed, 0 skipped'
exit $failed
