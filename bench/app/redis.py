# SPDX-License-Identifier: MIT
"""Redis: many small values of mixed kinds, written, read, changed and deleted over four connections."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest, find_program
from hakmem_lab.client import talk

CONNECTIONS = 4
BATCH = 64  # commands sent at once
END = b"end-of-batch"  # the last command of each batch has this echoed, so that the client knows when it is over
END_REPLY = b"$%d\r\n%s\r\n" % (len(END), END)
SPLIT = b"\n=====\n"  # between the batches in the input's file


def command(*words) -> bytes:
    """A command as Redis reads it."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Session:
    """What one connection asks: keys of its own, so that the replies don't depend on the others."""

    def __init__(self, number: int, keys: int, filler: str):
        self.dice, self.name, self.keys, self.filler = Dice(number), f"c{number}", keys, filler

    def key(self, kind: str, among: int) -> str:
        return f"{self.name}:{kind}:{self.dice.below(among)}"

    def value(self) -> str:
        """Mostly short, now and then long."""
        dice = self.dice
        length = dice.between(400, 3000) if dice.below(20) == 0 else dice.between(8, 200)
        start = dice.below(len(self.filler) - length)
        return self.filler[start:start + length]

    def next(self) -> bytes:
        die, keys = self.dice.below(100), self.keys
        if die < 30:
            return command("SET", self.key("s", keys), self.value())
        if die < 50:
            return command("GET", self.key("s", keys))
        if die < 55:
            return command("APPEND", self.key("s", keys), self.value()[:40])
        if die < 60:
            return command("DEL", self.key("s", keys))
        if die < 70:
            return command("HSET", self.key("h", keys // 20), f"f{self.dice.below(40)}", self.value())
        if die < 75:
            # Not HVALS: the order of a hash changes with Redis's random seed, from run to run.
            return command("HMGET", self.key("h", keys // 20), *(f"f{self.dice.below(40)}" for _ in range(8)))
        if die < 83:
            return command("LPUSH", self.key("l", keys // 50), self.value())
        if die < 88:
            return command("RPOP", self.key("l", keys // 50))
        if die < 96:
            return command("ZADD", self.key("z", keys // 100), self.dice.below(10000), self.dice.word(4))
        return command("ZRANGE", self.key("z", keys // 100), 0, 9, "WITHSCORES")

    def batch(self) -> bytes:
        return b"".join(self.next() for _ in range(BATCH - 1)) + command("ECHO", END)


class Redis(App):
    name = "redis"
    title = "Redis, mixed commands"
    text = ("A Redis server without persistence; four connections send SET, GET, APPEND, DEL, hashes, lists and "
            "sorted sets, 64 at a time.")
    # redis-server is this very program under another name. Its package would also start a server as a service.
    programs = ("redis-check-rdb",)
    packages = ("redis-tools",)
    metric = "wall"
    unit = "us/request"
    quick = True

    def prepare(self, work: Path, scale: float) -> None:
        batches = self.count(1500, scale)
        filler = Dice(99).text(1 << 16)
        inputs = Inputs(self, work, scale)
        for number in range(CONNECTIONS):
            session = Session(number, max(100, 10 * batches), filler)
            inputs.file(f"connection{number}",
                        lambda path: path.write_bytes(SPLIT.join(session.batch() for _ in range(batches))))

    def run(self, stage: Stage) -> str:
        files = [stage.input(f"connection{number}") for number in range(CONNECTIONS)]
        conversations = [file.read_bytes().split(SPLIT) for file in files]
        server = stage.scratch / "redis-server"
        server.symlink_to(find_program("redis-check-rdb"))
        port = stage.port()
        argv = [server, "--bind", "127.0.0.1", "--port", port, "--dir", stage.scratch, "--save", "",
                "--appendonly", "no", "--daemonize", "no"]
        with stage.serve(argv, port):
            seconds, replies = talk(port, conversations, lambda reply: reply.endswith(END_REPLY), stage.left())
            size = ask(port, command("DBSIZE"), stage.left())
        if not size.startswith(b":"):
            raise BadOutput(f"DBSIZE says {size[:80]!r}")
        stage.value(seconds * 1e6 / (BATCH * sum(map(len, conversations))))
        return digest(size, *replies)


def ask(port: int, request: bytes, seconds: float) -> bytes:
    """One short question."""
    answer = bytearray()

    def complete(reply: bytearray) -> bool:
        answer[:] = reply
        return reply.endswith(b"\r\n")

    talk(port, [[request]], complete, seconds)
    return bytes(answer)
