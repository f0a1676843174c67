# SPDX-License-Identifier: MIT
"""A JSON server under load: our own, in C++, since Debian packages none whose work is mostly the allocator's."""
import json
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Dice, Inputs, Stage, digest, plain
from hakmem_lab.client import talk

SOURCE = Path(__file__).parent / "source" / "json_server.cpp"
CONNECTIONS = 6
DOCUMENTS = 40  # different ones; each is sent many times


def document(dice: Dice) -> dict:
    customers = [dice.word() for _ in range(20)]
    return {"orders": [{"id": number, "customer": dice.pick(customers), "paid": dice.below(2) == 0, "voucher": None,
                        "lines": [{"item": dice.word(5), "count": dice.between(1, 9), "price": dice.below(9999) / 4,
                                   "note": dice.text(dice.between(10, 60))} for _ in range(dice.between(1, 6))]}
                       for number in range(dice.between(30, 100))]}


def request(body: bytes) -> bytes:
    return b"POST /report HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def complete(reply: bytearray) -> bool:
    head = reply.find(b"\r\n\r\n")
    if head < 0:
        return False
    if not reply.startswith(b"HTTP/1.1 200 "):
        raise BadOutput(reply[:200].decode(errors="replace"))
    field = reply.find(b"Content-Length: ")
    return len(reply) >= head + 4 + int(reply[field + 16:reply.index(b"\r\n", field)])


class JsonServer(App):
    name = "json_server"
    title = "JSON server under load"
    text = ("An HTTP server in C++ with one reading and two working threads takes JSON documents of orders apart and "
            "answers with reports. It keeps the last documents; six connections ask one thing after the other.")
    programs = ("g++",)
    packages = ("g++",)
    metric = "wall"
    unit = "us/request"
    threads = 3

    def prepare(self, work: Path, scale: float) -> None:
        inputs, dice = Inputs(self, work, scale), Dice(23)
        inputs.file("documents", lambda path: path.write_text(
            "\n".join(json.dumps(document(dice)) for _ in range(DOCUMENTS))))
        inputs.product("json_server", [SOURCE], lambda path: plain(
            ["g++", "-std=c++17", "-O2", "-pthread", SOURCE, "-o", path], inputs.folder))

    def run(self, stage: Stage) -> str:
        documents = [request(line) for line in stage.input("documents").read_bytes().split(b"\n")]
        dice, each = Dice(29), self.count(120, stage.scale)
        conversations = [[dice.pick(documents) for _ in range(each)] for _ in range(CONNECTIONS)]
        port = stage.port()
        with stage.serve([stage.input("json_server"), port], port):
            seconds, replies = talk(port, conversations, complete, stage.left())
        stage.value(seconds * 1e6 / (each * CONNECTIONS))
        return digest(*replies)
