#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How many stacks of real programs, as distributions build them, are found up to the thread's
start?

Usage: stack_count_test.py stack_count.so
At least nine of ten, in each program that is there; those with threads, and plugins, are among
them.
"""
import os
import shutil
import subprocess
import sys
import tempfile

LEAST = 0.9
PYTHON = """
import json, re, threading, sqlite3
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
"""
SQL = "create table t (a, b); " + "insert into t select 1, hex(randomblob(20)); " * 50 + \
    "select count(*) from (select a, b from t group by b order by b);"
REDIS = """redis-server --port 0 --unixsocket socket --save '' & r="redis-cli -s socket"
until $r ping; do :; done
for one in 'set key value' 'lpush list 1 2 3 4' 'sort list' 'config get *' info; do $r $one; done
$r shutdown nosave; wait"""
PROGRAMS = {  # words, and standard input
    "python3": (["/usr/bin/python3", "-c", PYTHON], None),
    "sqlite3": (["sqlite3", ":memory:", SQL], None),
    "gcc": ("gcc -x c -O2 -S -o /dev/null -".split(), "int f(int x) { return x * 3; }\n"),
    "perl": (["perl", "-e", "my %h; $h{$_} = 'x' x $_ for 1..2000; print scalar(keys %h)"], None),
    "g++": ("g++ -x c++ -S -o /dev/null -".split(), "#include <map>\nstd::map<int, int> m;\n"),
    "node": (["node", "-e", "[...Array(1000).keys()].map(x => ({ x, y: `${x}` }))"], None),
    "redis-server": (["sh", "-c", REDIS], None),
}


def count(name, library):
    """[walks, whole, full] of all processes of a program."""
    command, text = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "count")
        subprocess.run(command, input=text, text=True, check=False, cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, LD_PRELOAD=library, STACK_COUNT=path))
        if not os.path.exists(path):
            return [0] * 3
        with open(path, encoding="ascii") as file:
            return [sum(column) for column in zip(*(map(int, line.split()) for line in file))]


def main():
    failed, seen = False, 0
    for name in PROGRAMS:
        if shutil.which(name) is None:
            print(f"{name}: not there")
            continue
        walks, whole, full = count(name, sys.argv[1])
        share = whole / (walks - full) if walks > full else 0
        print(f"{name}: {share:.1%} of {walks} stacks are whole, {full} are too deep")
        seen += walks > 0
        failed = failed or (walks > 0 and share < LEAST)
    if seen == 0:
        print("no program is there")
        return 77
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
