# SPDX-License-Identifier: MIT
"""Developers' tools."""

import re

from rig import inputs
from rig.registry import program

GIT = ("git -c gc.auto=0 -c pack.threads=2 -c maintenance.auto=false -c advice.detachedHead=false"
       " -c user.name=Tester -c user.email=tester@example.org")


@program("git", long=True)
def git(run):
    """Branches, merges, clone, gc, fsck. Packs depend on threads: contents are compared."""
    clock = [1_700_000_000]

    def call(words, cwd="origin", **how):
        clock[0] += 60
        date = f"{clock[0]} +0000"
        env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_NOSYSTEM": "1"}
        return run.cmd(f"{GIT} {words}", cwd=run.place / cwd, env=env,
                       label=f"git {words}", **how)

    call("init -q -b main origin", cwd=".")
    for number in range(8):
        for index in range(60):
            name = f"origin/dir{index % 7}/file{index}"
            run.write(name, inputs.text(500 + index * 40, index * 100 + number * (index % 3)))
        run.write("origin/big", inputs.mixture(1 << 20, number))
        call("add -A")
        call(f"commit -q -m 'commit {number}\n\nbody'")
    call("checkout -q -b side HEAD~3")
    run.write("origin/only-side", inputs.text(10_000, 5))
    call("add -A")
    call("commit -q -m side")
    call("checkout -q main")
    call("merge -q --no-ff -m merge side")
    call("tag -a v1 -m tag")
    call("log --graph --stat -p -M")
    call("blame dir0/file7")
    call("grep -n -e ma --and -e ki")
    call("gc -q --aggressive --prune=now", loads=4)
    call("fsck --full --strict", clean=lambda text: b"")
    call("clone -q --no-local origin copy", cwd=".", loads=4)
    call("rev-list --all --objects", cwd="copy")
    call("fsck --full", cwd="copy", clean=lambda text: b"")
    call("status --porcelain", cwd="copy")
    call("diff --word-diff HEAD~5", cwd="copy")
    call("bundle create -q all.bundle --all")
    call("clone -q origin/all.bundle again", cwd=".", loads=2)
    call("rev-parse HEAD^{tree}", cwd="again")
    call("rebase -q --onto main~6 main~4 side", loads=2)
    call("archive --format=tar HEAD", cwd="copy")


@program("gdb gcc")
def gdb(run):
    """The debugger and the program under it both have the library."""
    run.cmd(f"gcc -g -O0 {run.guest('stops.c')} -o stops", loads=3)
    commands = ("break visit", "run", "bt", "info locals", "print *node", "ptype struct node",
                "delete", "finish", "continue")
    words = " ".join(f"-ex '{one}'" for one in commands)
    run.cmd(f"gdb -batch -nx -iex 'set debuginfod enabled off' {words} ./stops", loads=2,
            clean=without_addresses)
    run.cmd("gdb -batch -nx -ex 'python print(sum(len(str(n)) for n in range(10**5)))'")


def without_addresses(text):
    return re.sub(rb"0x[0-9a-f]+|process \d+", b"", text)


@program("openssl")
def openssl(run):
    run.write("data", inputs.mixture(1 << 20))
    run.cmd("openssl dgst -sha256 -hmac key data")
    secret = "-aes-256-cbc -pbkdf2 -S 0011223344556677 -pass pass:word"
    run.cmd(f"openssl enc {secret} -in data -out sealed")
    run.file("sealed")
    run.cmd(f"openssl enc -d {secret} -in sealed -out opened")
    run.cmd("cmp data opened")
    key = "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem"
    run.cmd(f"openssl {key}", clean=lambda text: b"")
    run.cmd("openssl rsa -in key.pem -check -noout")
    run.cmd("openssl prime -generate -bits 64", clean=lambda text: b"")
