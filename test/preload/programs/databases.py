# SPDX-License-Identifier: MIT
"""Databases: what they hold after the load is compared, not how fast they were."""

import re
from pathlib import Path

from rig import packages
from rig.registry import program
from rig.waiting import accepts, free_port, wait_for

TIMES = re.compile(rb"\d+\.\d+ s\b|\d+\.\d+ ms\b|tps = .*|\(.*\d s\)")


@program("sqlite3")
def sqlite(run):
    run.cmd("sqlite3", "-batch", "-bail", "base.db", f".read {run.guest('work.sqlite')}")
    run.file("base.db")
    run.cmd(
        "sqlite3",
        "base.db",
        ".sha3sum",
        "pragma integrity_check",
        "select count(*), total(length(body)) from note",
    )
    run.note("dump", run.cmd("sqlite3", "base.db", ".dump", label="dump"))
    run.cmd("sqlite3", ":memory:", ".read work.sqlite")


@program("redis-server redis-benchmark redis-cli", long=True)
def redis(run):
    port = free_port()
    words = [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(run.place),
        "--enable-debug-command",
        "yes",
    ]

    def client(*query, **how):
        return run.cmd("redis-cli", "-p", str(port), *query, label=" ".join(query)[:80], **how)

    def digest(when):
        return run.cmd("redis-cli", "-p", str(port), "debug", "digest", label=f"digest {when}")

    def benchmark(*options):
        run.cmd(
            "redis-benchmark",
            "-p",
            str(port),
            "-c",
            "20",
            "--csv",
            "--threads",
            "2",
            *options,
            label=f"redis-benchmark {' '.join(options)}",
            clean=first_column,
        )

    def ready():  # a server that still loads its file answers PING with an error
        return accepts(port) and b"PONG" in run.cmd_quiet("redis-cli", "-p", str(port), "ping")

    with run.server(*words, ready=ready):
        client("--pipe", stdin=redis_load(), clean=lambda text: text.rpartition(b"errors:")[2])
        digest("after the load")
        benchmark(
            "-n", "10000", "-t", "set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset"
        )
        benchmark("-n", "20000", "-t", "set,lpush", "-d", "3000", "-P", "16")
        digest("after the benchmark")
        for query in (
            "dbsize",
            "llen mylist",
            "get counter:__rand_int__",
            "lrange mylist 0 20",
            "hgetall myhash",
            "scard myset",
            "zcard myzset",
            "strlen key:__rand_int__",
        ):
            client(*query.split())
        client(
            "eval",
            "local n = 0 for i = 1, 20000 do"
            " n = n + #redis.call('set', 'lua' .. i, string.rep('x', i % 500))"
            " end return redis.sha1hex(n)",
            "0",
        )
        digest("after the script")
        client("debug", "reload")
        digest("after the reload")
        client("bgsave")
        saved = wait_for(
            lambda: (
                b"rdb_bgsave_in_progress:0"
                in run.cmd_quiet("redis-cli", "-p", str(port), "info", "persistence")
            ),
            30,
        )
        run.note("background save", saved)
        digest("after the save")
        client("flushall")
        client("--pipe", stdin=redis_load()[:200_000].rpartition(b"SET")[0], clean=lambda text: b"")
        client("memory", "doctor", clean=lambda text: b"")
    with run.server(
        *words, "--io-threads", "2", ready=ready
    ):  # these spin: no long load on a busy machine
        digest("of what was saved")
        client("dbsize")
        benchmark("-n", "1000", "-t", "set,get,lrange_300")


def redis_load():
    lines = []
    for n in range(40_000):
        lines += [
            f"SET text:{n} {'v' * (n * 31 % 700 + 1)}",
            f"HSET hash:{n % 500} field{n % 90} {'h' * (n % 120 + 1)}",
            f"RPUSH list:{n % 200} {n}",
            f"SADD set:{n % 100} member{n % 5000}",
            f"ZADD ranks:{n % 50} {n * 7 % 1000} name{n % 3000}",
        ]
        if n % 5 == 4:
            lines += [
                f"DEL text:{n - 3}",
                f"APPEND text:{n} {'w' * (n % 2000 + 1)}",
                f"XADD stream:{n % 9} {n + 1}-1 f {n}",
            ]
    return "\r\n".join(lines).encode() + b"\r\n"


def first_column(text):
    return b"\n".join(
        line.partition(b",")[0] for line in text.splitlines() if not line.startswith(b"WARNING")
    )


@program("postgres", long=True, timeout=600)
def postgresql(run):
    """Everything as a user without privileges: the server refuses root."""
    user = "nobody"
    bin_folder = Path(packages.find("postgres")).parent
    port = free_port()
    run.own(user)
    run.guest("work.sql")
    settings = {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(port),
        "PGUSER": "tester",
        "PGDATABASE": "postgres",
    }

    def call(name, *words, **how):
        label = f"{name} {' '.join(words)}".replace(str(port), "PORT")
        return run.cmd(bin_folder / name, *words, user=user, env=settings, label=label, **how)

    call(
        "initdb",
        "-D",
        "data",
        "-U",
        "tester",
        "--auth=trust",
        "--no-sync",
        "--locale=C",
        "-E",
        "UTF8",
        loads=4,
    )
    server = [
        bin_folder / "postgres",
        "-D",
        "data",
        "-p",
        str(port),
        "-k",
        str(run.place),
        "-c",
        "fsync=off",
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "autovacuum_naptime=1",
        "-c",
        "log_min_messages=warning",
    ]
    with run.server(*server, user=user, ready=lambda: accepts(port)):
        wait_for(
            lambda: (
                run.cmd_quiet(bin_folder / "pg_isready", user=user, env=settings).find(b"accepting")
                >= 0
            ),
            30,
        )
        call("pgbench", "-i", "-s", "2", "-q", clean=without_times)
        call("pgbench", "-c", "8", "-j", "2", "-t", "150", "--random-seed=42", clean=without_times)
        call(
            "pgbench",
            "-c",
            "4",
            "-j",
            "2",
            "-t",
            "300",
            "-S",
            "-M",
            "prepared",
            "--random-seed=1",
            clean=without_times,
        )
        call("psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", "work.sql")
        call("pg_dump", "--exclude-table-data=pgbench_*", clean=without_restrict)
        call("vacuumdb", "-q", "-z")


def without_times(text):
    lines = [TIMES.sub(b"", line) for line in text.splitlines()]
    return b"\n".join(
        line for line in lines if b"latency" not in line and b"connection time" not in line
    )


def without_restrict(text):
    return b"\n".join(
        line for line in text.splitlines() if not re.match(rb"\\(un)?restrict ", line)
    )
