#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs in 64 MiB of address space, or of data, with the library preloaded.

    programs_test.py python|redis       (the library: $HAKMEM_LIB)

Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""

import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_BYTES = 64 << 20
SKIP = 77
KEYS = 4000
LIMITS = {"address space": resource.RLIMIT_AS, "data": resource.RLIMIT_DATA}

# Takes memory until there is none, by small and by large blocks, three times; then works on. All pieces are compared by
# functions that need no memory themselves but an iterator's.
GUEST = """
import json, zlib
assert "libhakmem" in open("/proc/self/maps").read(), "the library is not there"
for size in (50, 3000, 100000, 3000000):
    for turn in range(3):
        taken = []
        try:
            while True:
                taken.append(bytes([turn]) * size)
        except MemoryError:
            count = len(taken)
            assert min(taken) == max(taken) and taken[0][0] == taken[0][-1] == turn
            del taken
        assert count * size >= 8 << 20, f"only {count} pieces of {size}"
data = {str(i): list(range(i % 50)) for i in range(20000)}
text = json.dumps(data)
assert json.loads(zlib.decompress(zlib.compress(text.encode()))) == data
print("python: all is well")
"""


def limited(kind):
    """Run in the child, before the program: it starts under the limit."""

    def apply():
        resource.setrlimit(kind, (LIMIT_BYTES, LIMIT_BYTES))

    return apply


def environment():
    return {**os.environ, "LD_PRELOAD": os.environ["HAKMEM_LIB"]}


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def python(kind):
    done = subprocess.run(
        [sys.executable, "-S", "-c", GUEST],
        env=environment(),
        preexec_fn=limited(kind),
        check=False,
    )
    if done.returncode != 0:
        fail(f"python ended with {done.returncode}")


# --- redis ---------------------------------------------------------------------------------------


class Client:
    """As much of the protocol as is needed: commands out, lines in."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        text = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(b"*%d\r\n" % len(words) + text)

    def receive(self):
        line = self.file.readline().rstrip()
        if line[:1] == b"$":
            length = int(line[1:])
            return None if length < 0 else self.file.read(length + 2)[:-2]
        if line[:1] in (b"-", b""):
            fail(f"redis says {line!r}")
        return line[1:]

    def ask(self, *words):
        self.send(*words)
        return self.receive()


def value(key, turn):
    return b"%d:%d:" % (turn, key) * (1 + key % 40)


def work(client, turn):
    """SET, GET and DEL of thousands of keys; every answer is looked at."""
    for key in range(KEYS):
        answer = client.ask(b"SET", b"key:%d" % key, value(key, turn))
        if answer != b"OK":
            fail(f"SET: {answer!r}")
    for key in range(KEYS):
        if client.ask(b"GET", b"key:%d" % key) != value(key, turn):
            fail(f"GET key:{key}: another value")
    for key in range(turn % 2, KEYS, 2):
        if client.ask(b"DEL", b"key:%d" % key) != b"1":
            fail(f"DEL key:{key}")
    left = client.ask(b"DBSIZE")
    if left != b"%d" % (KEYS // 2):
        fail(f"DBSIZE: {left!r}")


def connect(server, path):
    while server.poll() is None:
        with contextlib.suppress(OSError):
            return Client(path)
        time.sleep(0.02)
    return fail(f"redis-server does not serve; status {server.poll()}")


def redis(kind, folder):
    path = folder + "/redis"  # no port: another test could take it meanwhile
    words = ["redis-server", "--port", "0", "--unixsocket", path, "--save", ""]
    with subprocess.Popen(
        words,
        env=environment(),
        preexec_fn=limited(kind),
        stdout=subprocess.DEVNULL,
    ) as server:
        try:
            client = connect(server, path)
            if "libhakmem" not in Path(f"/proc/{server.pid}/maps").read_text():
                fail("the library is not in redis-server")
            for turn in range(4):
                work(client, turn)
            client.close()
            server.terminate()
            if server.wait() != 0:
                fail(f"redis-server ended with {server.returncode}")
        finally:
            if server.poll() is None:
                server.kill()
    print("redis: all is well")


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("python", "redis"):
        print(__doc__)
        return 2
    if sys.argv[1] == "redis" and shutil.which("redis-server") is None:
        print("skip: there is no redis-server")
        return SKIP
    for name, kind in LIMITS.items():
        print(f"64 MiB of {name}", flush=True)
        if sys.argv[1] == "python":
            python(kind)
            continue
        with tempfile.TemporaryDirectory(prefix="hak") as folder:
            redis(kind, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
