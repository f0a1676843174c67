#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the Python of the lab's virtual environment, which is made or brought up to date first.
set -eu
root=$(CDPATH='' cd -P "$(dirname "$0")/.." && pwd -P)
venv=$root/build/lab/venv
wanted=$root/tools/hakmem_lab/requirements.txt
log=$root/build/lab/venv.log

fail() {
    printf 'hakmem: %s\n' "$*" >&2
    exit 1
}

is_fresh() {
    cmp -s "$wanted" "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null
}

# Another user's folder is good enough to read.
if is_fresh; then
    printf '%s\n' "$venv/bin/python"
    exit 0
fi
lock=$root/build/lab/.venv-lock
{ mkdir -p "$root/build/lab" && touch "$lock"; } 2>/dev/null ||
    fail "its Python environment, $venv, is missing or old, and user $(id -un) cannot write there:" \
        "let its owner use the command"
exec 8>"$lock"
flock 8
if ! is_fresh; then
    printf 'hakmem: making the virtual environment of the lab\n' >&2
    rm -rf "$venv"
    python3 -c 'import tomllib' 2>/dev/null || fail "the lab needs Python 3.11 or newer"
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        fail "Python's venv is missing; install what Debian calls python3-venv"
    python3 -m venv "$venv" >"$log" 2>&1 || fail "cannot make $venv; see $log"
    "$venv/bin/python" -m pip --disable-pip-version-check install -r "$wanted" >>"$log" 2>&1 8>&- ||
        fail "pip could not install what the lab needs; see $log"
    cp "$wanted" "$venv/requirements.txt"
fi
printf '%s\n' "$venv/bin/python"
