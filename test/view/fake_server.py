# SPDX-License-Identifier: MIT
"""A program that answers on a unix socket as the library's control thread does, or wrongly in one of many ways.

    fake_server.py MODE ADDRESS      prints "ready", then answers until its input ends
"""
from __future__ import annotations

import ctypes
import json
import os
import socket
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import synthetic

SAMPLES = Path(__file__).resolve().parent / "samples"
FILES = {"/stats.json": "stats.json", "/explain.json": "explain.json", "/map.json": "map.json",
         "/metrics": "metrics.txt"}
SPARSE = {"/stats.json": {}, "/explain.json": {"causes": [{"name": "live"}]},
          "/map.json": {"superslabs": [{"spans": [{"unit": 3, "kind": "slab"}, {"kind": "new"}]}]}}
ODD = ({"classes": 5}, {"threads": [1]}, {"bytes": []}, {"events": {"oom": True, "refill_list": 1e400}},
       {"classes": [{"bytes": "big"}]})
ODD_LEARNERS = (5, [1], [{"keep_ms": "long"}], [{"learn": "1", "keep_ms": 77}], [{"strategies": {}}],
                [{"strategies": [{"keep_ms": 400, "held_bytes": -1}]}], [{"strategies": [{"keep_ms": 0}]}])


def document(path: str, pid: int, moment: float) -> dict:
    """A sample as if this process had made it; events go on with time."""
    found = json.loads((SAMPLES / FILES[path]).read_text(encoding="utf-8"))
    found["pid"] = pid
    for name in found.get("events", {}):
        found["events"][name] += int(1000 * moment)
    return found


def text_of(mode: str, path: str, pid: int) -> bytes:
    """A document about a process in this mode."""
    if path.endswith(".txt"):
        return f"hakmem: {path}".encode()
    if path == "/metrics":
        return (SAMPLES / FILES[path]).read_bytes()
    found = document(path, pid, time.monotonic())
    if mode == "sparse":
        found = {"schema": 1, **SPARSE[path]}
    elif mode == "schema":
        found.update(schema=2, hakmem="0.9.0")
    elif mode.startswith("learner"):
        found["learner"] = ODD_LEARNERS[int(mode[7:])]
    elif mode.startswith("odd"):
        found.update(ODD[int(mode[3:])])
    elif mode == "evil":
        found["hakmem"] = "<script>alert(1)</script>\x1b[2J"
        found.update(text="<img src=https://example.org/x>", first="live", causes=[
            {"name": "<b>", "bytes": 7, "title": "<script>alert(2)</script>", "advice": "\x1b]0;owned\x07"}])
    return json.dumps(found).encode() if mode != "cut-json" else json.dumps(found).encode()[:-40]


CLOSE_RANGE_UNSHARE = 2
PROFILE = "/profile"
ODD_PROFILES = ({"profile": 2}, {"profile": None}, {"sites": 5}, {"sites": [1]}, {"sites": [{}]}, {"sites": [{"stack": [5]}]},
                {"sites": [{"stack": ["0xzz"]}]}, {"sites": [{"stack": ["0x1ffffffffffffffff"]}]}, {"mappings": [{"start": "0x9"}]},
                {"mappings": [{"start": "0x9", "end": "0x8", "offset": "0x0"}]}, {"rate": "all"}, {"rate": 10 ** 400},
                {"exact": []}, {"samples": {"live": "x"}}, {"sites": [{"stack": [], "inuse": {"bytes": float("inf")}}]},
                {"sites": [{"stack": [], "lifetimes_ns": 3}]}, {"sites": [{"stack": [], "threads": [3]}]}, {"estimate": 1})


class Handler(BaseHTTPRequestHandler):
    mode = "ok"
    rate = 0  # of sampling; 0: off
    asked: list[str] = []  # rates that were set

    def _profile(self) -> bytes:
        """It has grown a little whenever it is read."""
        kind = type(self)
        kind.reads = getattr(kind, "reads", 0) + 1
        load = synthetic.standard(pid=os.getpid(), rate=kind.rate or synthetic.RATE)
        load.sites[0].live += 4000 * kind.reads
        found = synthetic.document(load, seed=3)
        found.update(is_on=bool(kind.rate), time_ns=found["time_ns"] + kind.reads * synthetic.SECOND)
        found["samples"]["dropped"] = 7 if self.mode == "drops" else 0
        if self.mode.startswith("profile"):
            found.update(ODD_PROFILES[int(self.mode[7:])])
        if self.mode == "inherited":
            found["pid"] = os.getppid()
        if self.mode == "evil":
            found["program"] = "</script><script>alert(1)</script>\x1b[2J"
            found["sites"][0]["label"] = "</script><img src=x onerror=alert(2)>\x1b]0;owned\x07;x"
            found["mappings"][0]["path"] = "/tmp/<script>alert(3)</script>\n"
        body = json.dumps(found).encode()
        return body[:-40] if self.mode == "cut-json" else body

    def do_POST(self):
        words = urlsplit(self.path)
        given = parse_qs(words.query).get("rate", [""])[0]
        if words.path != PROFILE or not given.isdigit() or self.mode in ("old", "no-post"):
            self._answer(405 if self.mode == "no-post" else 404, b"")
            return
        type(self).rate = int(given)
        type(self).asked = [*self.asked, given]
        self._answer(200, b"{}\n")

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.mode == "early":
            return
        if self.mode == "slow":
            time.sleep(60)
        path = self.path
        if path == "/":
            self._answer(200, "\n".join(FILES).encode())
        elif path == "/asked":
            self._answer(200, json.dumps(self.asked).encode())
        elif path == "/heap.pb.gz":
            self._answer(200, b"\x1f\x8bfake")
        elif self.mode == "old" or path == PROFILE and self.mode == "text" or path not in (PROFILE, *FILES):
            self._answer(404, b"no such document\n")
        elif self.mode == "busy":
            self._answer(503, b"")
        else:
            self._answer(200, self._profile() if path == PROFILE else text_of(self.mode, path, os.getpid()))

    def _answer(self, status: int, body: bytes) -> None:
        if self.mode == "garbage":
            self.wfile.write(b"\x00\xff\xfe" * 100)
            return
        self.send_response_only(status)
        self.send_header("Server", "hakmem/0.9.0" if self.mode in ("newer", "schema") else "hakmem/0.1.0")
        if self.mode != "foreign":
            self.send_header("X-Hakmem-Control", "2" if self.mode == "newer" else "1")
        self.send_header("Content-Length", str(len(body) + (1000 if self.mode == "short" else 0)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # the other side went away

    def get_request(self):
        return self.socket.accept()[0], ("peer", 0)


def serve(mode: str, address: str) -> Server:
    handler = type("Handler", (Handler,), {"mode": mode, "rate": 65536 if mode == "on" else 0})
    server = Server("\0" + address[1:] if address.startswith("@") else address, handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def serve_apart(address: str) -> None:
    """The library's thread has descriptors of its own: those of the process do not show the socket."""
    ready = threading.Event()

    def run() -> None:
        close_range = ctypes.CDLL(None).close_range
        if close_range(1 << 30, 1 << 30, CLOSE_RANGE_UNSHARE):
            sys.exit("no descriptors of its own")
        handler = type("Handler", (Handler,), {"mode": "ok"})
        with Server("\0" + address[1:], handler) as server:
            ready.set()
            while True:
                request, peer = server.get_request()
                handler(request, peer, server)
                request.close()
    threading.Thread(target=run, daemon=True).start()
    if not ready.wait(20):
        sys.exit("no server")


def main() -> None:
    mode, address = sys.argv[1:]
    keep: list[socket.socket] = []
    if mode == "datagram":  # listening is nothing it can do
        keep.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        keep[0].bind("\0" + address[1:])
    elif mode == "thread":
        serve_apart(address)
    elif mode != "nothing":
        serve(mode, address)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
