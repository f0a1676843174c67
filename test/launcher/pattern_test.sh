#!/bin/sh
# SPDX-License-Identifier: MIT
# `test PATTERN` builds what the tests that match it need, and nothing in flavours where none does; what failed is told at
# the end, and a tree that passed is written down. Building and testing are doubles here.
set -eu
# shellcheck source=test/launcher/expect.sh
. "$HAKMEM_SOURCE/test/launcher/expect.sh"

needs() { # WORDS…
    expect 0 "$HAKMEM_SOURCE/tools/tests_need.py" "$HAKMEM_BUILD" "$@"
}

needs -R '^thread_ring_hak-'
prints test/thread/thread_ring_hak
# What a script runs, and the library it is meant for, which only its environment names.
needs -R '^observe_report_users-'
prints "hakmem
hakmem_static
test/observe/observe_exit"
# Modules that a program loads by their path.
needs -R '^life_deepbind-'
says out test/life/liblife_deepbind_outer.so
# The Python environment is for those who run in it.
needs -R '^lab_records-'
says out lab
needs -R '^nosuch'
prints ""
# Tests of profiles are known by their names, too.
needs -R '^api_malloc-debug$'
prints ""
needs --config debug --config low-memory --config throughput -L '^profile$' -R '^api_malloc-'
says out test/api/api_malloc

# A tree in which building is only written down: one flavour has a test that matches, the others none.
tree=$work/tree
mkdir -p "$tree/tools" "$tree/build" "$work/bin"
cp "$HAKMEM_SOURCE/tools/run_tests.py" "$tree/tools/"
double() { # NAME BODY
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
cat >"$tree/tools/tests_need.py" <<'EOF'
def chosen(build, configuration, words):
    return {"one": {}} if build.endswith("release") else {}


def properties(test, name):
    return []


def targets(tests, build):
    return {"one_target"}
EOF
double cmake "echo \"\$@\" >>'$work/cmake.log'; [ ! -e '$work/broken' ] || case \$* in *--build*) exit 1 ;; esac"
cat >"$work/good.xml" <<'EOF'
<testsuite><testcase name="one_good" time="0.1" status="run"/></testsuite>
EOF
cat >"$work/bad.xml" <<'EOF'
<testsuite>
<testcase name="one_good" time="0.1" status="run"/>
<testcase name="one_off" time="0" status="notrun"/>
<testcase name="one_bad" time="2.25" status="fail"><failure message="Timeout"/><system-out>early
late</system-out></testcase>
</testsuite>
EOF
# shellcheck disable=SC2016 # its own words
double ctest 'while [ "$1" != --output-junit ]; do shift; done; cp "'"$work"'/report.xml" "$2"'
# shellcheck disable=SC2317 # called through expect
tests() {
    PATH=$work/bin:$PATH python3 -B "$tree/tools/run_tests.py" "$@"
}

cp "$work/bad.xml" "$work/report.xml"
expect 1 tests gate '^one_'
grep -q -- "--build .*build/release .*one_target$" "$work/cmake.log" || fail "not built: $(cat "$work/cmake.log")"
grep -q -- '--build .*build/debug-audit' "$work/cmake.log" && fail "built for nothing: $(cat "$work/cmake.log")"
says out 'failed: one_bad, 2.2 s, Timeout'
says out '    late'
# shellcheck disable=SC2016 # a dollar sign
says out './hakmem test '\''^one_bad$'\'
[ "$(tail -n 1 "$work/out")" = '1 passed, 1 failed, 1 skipped' ] || fail "the sum is not last: $(cat "$work/out")"

# The reason is what the test itself says, where ctest has none.
sed 's/<failure message="Timeout"/<failure message=""/; s/^late/[  ERROR   ] --- 1 != 2/' "$work/bad.xml" >"$work/report.xml"
expect 1 tests gate '^one_'
says out 'failed: one_bad, 2.2 s, [  ERROR   ] --- 1 != 2'
cp "$work/bad.xml" "$work/report.xml"

# With a time limit, too, and a pattern that begins with a dash.
expect 1 tests gate --minutes 20 -- '-bad$'
says out './hakmem test '\''^one_bad$'\'

# A build that fails counts; what was built is tested.
cp "$work/good.xml" "$work/report.xml"
touch "$work/broken"
expect 1 tests gate
says out 'failed: the build of release, what was built is tested'
says out '1 passed, 1 failed, 0 skipped'
rm "$work/broken"

# The tree that passed is written down, if it is a commit's.
git -C "$tree" init -q
printf 'build\n' >"$tree/.gitignore"
git -C "$tree" add .
git -C "$tree" -c user.name=test -c user.email=test commit -q -m one
expect 0 tests gate
says out '1 passed, 0 failed, 0 skipped'
grep -q "^$(git -C "$tree" rev-parse 'HEAD^{tree}') release " "$tree/build/gate-passed" || fail "not written down"
# Not if it changes meanwhile, nor with changes of its own.
double ctest "git -C '$tree' -c user.name=test -c user.email=test commit -q --allow-empty -m two; touch '$tree/more'
while [ \$1 != --output-junit ]; do shift; done; cp '$work/report.xml' \"\$2\""
expect 0 tests gate
says out 'The tree changed while it was tested'
expect 0 tests gate
says out 'changes that are not committed'
[ ! -e "$tree/build/gate-passed" ] || fail "a tree with changes is said to have passed"

# What takes too long is stopped, and told.
double ctest 'echo "  Start 1: one_slow"; (setsid sleep 1000 &); exec sleep 1000'
cp "$tree/tools/run_tests.py" "$work/saved"
sed 's/60 \* self.minutes/0.1 * self.minutes/' "$work/saved" >"$tree/tools/run_tests.py"
expect 1 tests gate --minutes 1
says out 'stopped after 1 minutes of processors of its own; what ran longest: one_slow'
says out './hakmem test --minutes 0'
exit $failed
