#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the Python of the lab's virtual environment, which is made or brought up to date first.
# --if-there: makes nothing; status 1 if there is none that can be used.
set -eu
umask 022 # what root makes serves all users
root=$(CDPATH='' cd -P "$(dirname "$0")/.." && pwd -P)
venv=$root/build/lab/venv
wanted=$root/tools/hakmem_lab/requirements.txt
log=$root/build/lab/venv.log

say() {
    printf 'hakmem: %s\n' "$*" >&2
}

fail() {
    say "$@"
    exit 1
}

is_fresh() {
    cmp -s "$wanted" "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null
}

# may_all_run PYTHON: whether other users can, too: by the modes of its file, of its modules, and of all folders above
may_all_run() {
    "$1" - <<'PYTHON' 2>/dev/null
import os, sys
for path in (os.path.realpath(sys.executable), os.path.realpath(os.__file__)):
    while path != "/":
        if os.stat(path).st_mode & 0o5 != 0o5 and not path.endswith(".py"):
            sys.exit(1)
        path = os.path.dirname(path)
PYTHON
}

# Of root's a Python that all users may execute, if there is one.
choose_python() {
    for candidate in python3 /usr/bin/python3 /usr/local/bin/python3; do
        if "$candidate" -c 'import ensurepip, tomllib, venv' 2>/dev/null &&
            { [ "$(id -u)" != 0 ] || may_all_run "$candidate"; }; then
            echo "$candidate"
            return
        fi
    done
    echo python3
}

# Another user's folder is good enough to read.
if is_fresh; then
    printf '%s\n' "$venv/bin/python"
    exit 0
fi
[ "${1:-}" != --if-there ] || exit 1
command -v flock >/dev/null || fail "flock is missing; install what Debian calls util-linux"
# What its owner may use and we may not: to ask the owner to use it would change nothing.
if cmp -s "$wanted" "$venv/requirements.txt" && ! [ -w "$venv" ]; then
    fail "the Python environment $venv was made from $(sed -n 's/^executable = //p' "$venv/pyvenv.cfg")," \
        "which user $(id -un) cannot execute; when its owner removes it, it is made anew from one that all may"
fi
lock=$root/build/lab/.venv-lock
{ mkdir -p "$root/build/lab" && touch "$lock"; } 2>/dev/null ||
    fail "its Python environment, $venv, is missing or old, and user $(id -un) cannot write there:" \
        "let its owner use the command"
exec 8>"$lock"
flock 8
if ! is_fresh; then
    python=$(choose_python)
    "$python" -c 'import tomllib' 2>/dev/null || fail "the lab needs Python 3.11 or newer"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "Python's venv is missing; install what Debian calls python3-venv"
    say "making the Python environment of the lab, once: about a minute, and 60 MB from the network"
    rm -rf "$venv"
    "$python" -m venv "$venv" >"$log" 2>&1 || fail "cannot make $venv; see $log"
    "$venv/bin/python" -m pip --disable-pip-version-check install -r "$wanted" >>"$log" 2>&1 8>&- ||
        fail "pip could not install what the lab needs; see $log"
    cp "$wanted" "$venv/requirements.txt"
fi
printf '%s\n' "$venv/bin/python"
