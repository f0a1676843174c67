# SPDX-License-Identifier: MIT
"""Databases: what they hold after the load is compared, not how fast they were."""

import re
from pathlib import Path

from rig import packages
from rig.registry import program
from rig.waiting import accepts, wait_for

TIMES = re.compile(rb"\d+\.\d+ s\b|\d+\.\d+ ms\b|tps = .*|\(.*\d s\)|.*(latency|connection time).*")


@program("sqlite3")
def sqlite(run):
    run.cmd("sqlite3", "-batch", "-bail", "base.db", f".read {run.guest('work.sqlite')}")
    run.file("base.db")
    run.cmd("sqlite3", "base.db", ".sha3sum", "pragma integrity_check",
            "select count(*), total(length(body)) from note")
    run.note("dump", run.cmd("sqlite3 base.db .dump"))
    run.cmd("sqlite3 :memory: '.read work.sqlite'")


@program("redis-server redis-benchmark redis-cli", long=True)
def redis(run):
    port = run.port()
    words = (f"redis-server --port {port} --bind 127.0.0.1 --save '' --dir {run.place}"
             " --enable-debug-command yes")
    cli = f"redis-cli -p {port}"
    digests = iter("abcdefg")

    def client(*queries, **how):
        for query in queries:
            run.cmd(f"{cli} {query}", **how)

    def digest():
        run.cmd(f"{cli} debug digest", label=f"digest {next(digests)}")

    def benchmark(options):
        run.cmd(f"redis-benchmark -p {port} -c 20 --csv --threads 2 {options}", clean=first_column)

    def ready():  # a server that still loads its file answers PING with an error
        return accepts(port) and b"PONG" in run.cmd_quiet(f"{cli} ping")

    def is_saved():
        return b"rdb_bgsave_in_progress:0" in run.cmd_quiet(f"{cli} info persistence")

    with run.server(words, ready=ready):
        client("--pipe", stdin=redis_load(), clean=lambda text: text.rpartition(b"errors:")[2])
        digest()
        benchmark("-n 10000 -t set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset")
        benchmark("-n 20000 -t set,lpush -d 3000 -P 16")
        digest()
        client("dbsize", "llen mylist", "get counter:__rand_int__", "lrange mylist 0 20",
               "hgetall myhash", "scard myset", "zcard myzset", "strlen key:__rand_int__")
        client('''eval "local n = 0 for i = 1, 20000 do'''
               ''' n = n + #redis.call('set', 'lua' .. i, string.rep('x', i % 500))'''
               ''' end return redis.sha1hex(n)" 0''')
        digest()
        client("debug reload")
        digest()
        client("bgsave")
        run.note("background save", wait_for(is_saved))
        digest()
        client("flushall")
        client("--pipe", stdin=redis_load()[:200_000].rpartition(b"SET")[0], clean=lambda text: b"")
        client("memory doctor", clean=lambda text: b"")
    # These threads spin: no long load on a busy machine.
    with run.server(f"{words} --io-threads 2", ready=ready):
        digest()
        client("dbsize")
        benchmark("-n 1000 -t set,get,lrange_300")


def redis_load():
    lines = []
    for n in range(40_000):
        lines += [f"SET text:{n} {'v' * (n * 31 % 700 + 1)}",
                  f"HSET hash:{n % 500} field{n % 90} {'h' * (n % 120 + 1)}",
                  f"RPUSH list:{n % 200} {n}", f"SADD set:{n % 100} member{n % 5000}",
                  f"ZADD ranks:{n % 50} {n * 7 % 1000} name{n % 3000}"]
        if n % 5 == 4:
            lines += [f"DEL text:{n - 3}", f"APPEND text:{n} {'w' * (n % 2000 + 1)}",
                      f"XADD stream:{n % 9} {n + 1}-1 f {n}"]
    return "\r\n".join(lines).encode() + b"\r\n"


def first_column(text):
    return b"\n".join(line.partition(b",")[0] for line in text.splitlines()
                      if not line.startswith(b"WARNING"))


@program("postgres", long=True, timeout=600)
def postgresql(run):
    """Everything as a user without privileges: the server refuses root."""
    user, port = "nobody", run.port()
    folder = Path(packages.find("postgres")).parent
    run.own(user)
    run.guest("work.sql")
    settings = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "tester",
                "PGDATABASE": "postgres"}

    def call(line, **how):
        return run.cmd(f"{folder}/{line}", user=user, env=settings, **how)

    def ready():
        return b"accepting" in run.cmd_quiet(f"{folder}/pg_isready", user=user, env=settings)

    call("initdb -D data -U tester --auth=trust --no-sync --locale=C -E UTF8", loads=4)
    server = (f"{folder}/postgres -D data -p {port} -k {run.place} -c fsync=off"
              " -c listen_addresses=127.0.0.1 -c autovacuum_naptime=1 -c log_min_messages=warning")
    with run.server(server, user=user, ready=ready):
        call("pgbench -i -s 2 -q", clean=without_times)
        call("pgbench -c 8 -j 2 -t 150 --random-seed=42", clean=without_times)
        call("pgbench -c 4 -j 2 -t 300 -S -M prepared --random-seed=1", clean=without_times)
        call("psql -X -v ON_ERROR_STOP=1 -f work.sql")
        call("pg_dump --exclude-table-data=pgbench_*", clean=without_restrict)
        call("vacuumdb -q -z")


def without_times(text):
    return b"\n".join(TIMES.sub(b"", line) for line in text.splitlines())


def without_restrict(text):
    return re.sub(rb"^\\(un)?restrict .*", b"", text, flags=re.M)
