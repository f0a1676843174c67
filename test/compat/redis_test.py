#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's redis-server, which is linked with jemalloc, preloaded: are the allocator's figures in INFO memory those of explain?

Usage: redis_test.py
"""
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../observe"))
from observing import document, require_reading  # noqa: E402
from reporting import LIBRARY, SkipTest, run_tests, wait_until  # noqa: E402

OBSERVER = os.environ.get("HAKMEM_BUILD", "") + "/observe/hakmem-observe"
SERVER = shutil.which("redis-server")


class Redis:
    def __init__(self, folder):
        if SERVER is None or b"libjemalloc" not in subprocess.run(["ldd", SERVER], capture_output=True, check=False).stdout:
            raise SkipTest("no redis-server that is linked with libjemalloc")
        require_reading()
        self.path = folder + "/redis"
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="guard:0")
        self.process = subprocess.Popen([SERVER, "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "no",
                                         "--enable-debug-command", "yes", "--dir", folder, "--loglevel", "warning"],
                                        env=environment, stdout=subprocess.DEVNULL)
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            wait_until("redis-server", self.is_connected)
        except BaseException:
            self.process.kill()
            raise
        self.file = self.sock.makefile("rb")

    def is_connected(self):
        """It listens a while after it made its socket."""
        assert self.process.poll() is None, "redis-server ended"
        return self.sock.connect_ex(self.path) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.file.close()
        self.sock.close()

    def ask(self, command):
        self.sock.sendall(command.encode() + b"\r\n")
        line = self.file.readline().decode().rstrip("\r\n")
        assert line[0] != "-", line
        return self.file.read(int(line[1:]) + 2)[:-2].decode() if line[0] == "$" else line[1:]

    def info(self):
        return dict(line.split(":", 1) for line in self.ask("INFO memory").splitlines() if ":" in line)

    def held(self):
        """Bytes that the program holds, by the statistics; and bytes that are resident for it, by explain."""
        figures = document(OBSERVER, "stats", self.process.pid)["bytes"]
        explained = document(OBSERVER, "explain", self.process.pid)
        others = next(cause["bytes"] for cause in explained["causes"] if cause["name"] == "others")
        return figures["live"] + figures["large"] + figures["huge"], explained["sum_bytes"] - others


def is_near(one, other):
    return abs(one - other) <= other * 0.02


def expect_figures(redis, what):
    """Redis reads them ten times a second."""
    def agree():
        info, (held, resident) = redis.info(), redis.held()
        print(what, "held", held, info["allocator_allocated"], "resident", resident, info["allocator_resident"], flush=True)
        return is_near(int(info["allocator_allocated"]), held) and is_near(int(info["allocator_resident"]), resident)
    wait_until("figures that agree within 2 %", agree)


def test_figures_of_info_are_those_of_explain(folder):
    with Redis(folder) as redis:
        redis.ask("DEBUG POPULATE 300000 key 200")
        expect_figures(redis, "full:")
        assert float(redis.info()["allocator_frag_ratio"]) < 1.2
        for first in range(0, 300000, 1000):  # nine of ten
            redis.ask("DEL " + " ".join(f"key:{key}" for key in range(first, first + 1000) if key % 10))
        expect_figures(redis, "after deletions:")
        assert redis.ask("MEMORY PURGE") == "OK"
        expect_figures(redis, "purged:")
        text = redis.ask("MEMORY MALLOC-STATS")
        assert text.startswith("___ Begin jemalloc statistics ___\n") and "hakmem" in text, text[:200]


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
