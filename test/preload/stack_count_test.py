#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many stacks of real programs, as distributions build them, are found up to the thread's start?

Usage: stack_count_test.py stack_count.so
At least nine of ten, in each program that is there; those with threads, and plugins, are among them.
"""
import os
import shutil
import subprocess
import sys
import tempfile

LEAST = 0.9
EVERY = "7"  # a call of malloc in this many
PYTHON = """
import json, re, threading, sqlite3, hashlib
def work(n):
    rows = [{"n": i, "text": "x" * i} for i in range(200)]
    text = json.dumps(rows)
    assert json.loads(text) == rows
    re.findall("x+", text)
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a, b)")
    base.executemany("insert into t values (?, ?)", [(i, str(i)) for i in range(200)])
    list(base.execute("select a, count(*) from t group by a order by b"))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print("done")
"""
SQL = "create table t (a, b); " + "insert into t select 1, hex(randomblob(20)); " * 50 + \
    "select count(*) from (select a, b from t group by b order by b);"
REDIS = ["set key value", "lpush list 1 2 3 4", "sort list", "config get *", "info", "shutdown nosave"]
PROGRAMS = {
    "python3": (["/usr/bin/python3", "-c", PYTHON], None),
    "sqlite3": (["sqlite3", ":memory:", SQL], None),
    "gcc": (["gcc", "-x", "c", "-O2", "-S", "-o", "/dev/null", "-"], "int f(int x) { return x * 3; }\n" * 1),
    "perl": (["perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..2000; print scalar(keys %h)"], None),
    "g++": (["g++", "-x", "c++", "-S", "-o", "/dev/null", "-"], "#include <map>\nstd::map<int, int> m;\n"),
    "node": (["node", "-e", "console.log([...Array(1000).keys()].map(x => ({ x, y: `${x}` })).length)"], None),
    "redis-server": (None, None),
}


def run_redis(environment):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
                              env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                for command in REDIS:
                    for _ in range(100):
                        done = subprocess.run(["redis-cli", "-s", path] + command.split(), check=False,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                        if done.returncode == 0 or command.startswith("shutdown"):
                            break
                server.wait(20)
            finally:
                server.kill()


def count(name, library):
    """[walks, whole, full, frames, ns] of all processes of a program."""
    command, text = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "count")
        environment = dict(os.environ, LD_PRELOAD=library, STACK_COUNT=path, STACK_COUNT_EVERY=EVERY)
        if command is None:
            run_redis(environment)
        else:
            subprocess.run(command, input=text, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           text=True, check=False, timeout=200)
        if not os.path.exists(path):
            return [0] * 5
        with open(path, encoding="ascii") as file:
            return [sum(column) for column in zip(*([int(word) for word in line.split()] for line in file))]


def main():
    failed, seen = False, 0
    for name in PROGRAMS:
        if shutil.which(name) is None or (name == "redis-server" and shutil.which("redis-cli") is None):
            print(f"{name}: not there")
            continue
        walks, whole, full, frames, ns = count(name, sys.argv[1])
        share = whole / (walks - full) if walks > full else 0
        mean = f"{frames / walks:.0f} functions, {ns / walks:.0f} ns each" if walks else "none"
        print(f"{name}: {share:.1%} of {walks} stacks are whole, {full} are too deep; {mean}")
        seen += walks > 0
        failed = failed or (walks > 0 and share < LEAST)
    if seen == 0:
        print("no program is there")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
