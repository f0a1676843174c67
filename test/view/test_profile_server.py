# SPDX-License-Identifier: MIT
"""A leak and pinned slabs planted in a server under load, the JSON server of bench/app: its page names both at function and
line, and so does `go tool pprof`."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import leaky
import pytest
from conftest import TOOL
from test_profile_real import first_row, most_on_page, top
from test_real import LIBRARY, ROOT, _knows

from hakmem_lab.apps import Dice
from hakmem_lab.client import talk
from hakmem_view.profile_model import profile

pytestmark = [pytest.mark.skipif(not _knows("profile_rate", "control"), reason="no library that knows profile_rate and control"),
              pytest.mark.skipif(not shutil.which("c++"), reason="c++ is not installed")]
SOURCE = ROOT / "bench" / "app" / "source" / "json_server.cpp"
ORDERS, EACH, CONNECTIONS = 60, 80, 6


def place(words: str) -> str:
    return f"planted.hpp:{leaky.line_of(words, 'planted.hpp')}"


# By column of the page: function, line, kind of value in files of pprof.
PLANTED = {"In use": ("note_order", place("the line of the leak"), "inuse_space"),
           "Pinned": ("open_session", place("the line of the pinned blocks"), "pinned_space")}


def request(orders: int, dice: Dice) -> bytes:
    def order(number: int) -> dict:
        return {"id": number, "customer": dice.word(),
                "lines": [{"item": dice.word(5), "count": 2, "price": 3.5, "note": dice.text(30)}]}
    body = json.dumps({"orders": [order(number) for number in range(orders)]}).encode()
    return b"POST /report HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def complete(reply: bytearray) -> bool:
    head = reply.find(b"\r\n\r\n")
    assert head < 0 or reply.startswith(b"HTTP/1.1 200 "), reply
    length = re.search(rb"Content-Length: (\d+)", reply)
    return head >= 0 and len(reply) >= head + 4 + int(length[1])


def listens(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server after its load: 28,800 orders, then the end of their sessions."""
    program = tmp_path_factory.mktemp("server") / "json_server"
    subprocess.run(["c++", "-std=c++17", "-g", "-O2", "-pthread", f'-DPLANTED="{leaky.PROGRAMS}/planted.hpp"', SOURCE, "-o", program],
                   check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one = subprocess.Popen([program, str(port)], env={**os.environ, "LD_PRELOAD": str(LIBRARY),
                                                      "HAKMEM_OPTIONS": "control:@hakmem-%p,profile_rate:4096"})
    try:
        until = time.monotonic() + 60
        while not listens(port):
            assert time.monotonic() < until and one.poll() is None
            time.sleep(0.02)
        dice = Dice(31)
        documents = [request(ORDERS, dice) for _ in range(10)]
        talk(port, [[dice.pick(documents) for _ in range(EACH)] for _ in range(CONNECTIONS)], complete, 240)
        talk(port, [[request(0, dice)]], complete, 60)
        yield one
        one.send_signal(signal.SIGTERM)
        assert one.wait(60) == 0
    finally:
        one.kill()
        one.wait()


@pytest.fixture(scope="module")
def stored(server, tmp_path_factory):
    """What the running server tells; its page lies beside it."""
    path = tmp_path_factory.mktemp("stored") / "profile.json"
    subprocess.run([sys.executable, TOOL, "profile", "--seconds", "0", "--json", path, "--html", path.parent / "page.html",
                    str(server.pid)], timeout=240, check=True)
    return path


@pytest.mark.parametrize("option, column", [("--leaks", "In use"), ("--pinned", "Pinned")])
def test_planted_sites_of_a_server_are_named_at_function_and_line(view, stored, option, column):
    function, line, _ = PLANTED[column]
    most = most_on_page(stored.parent, column)
    assert function in most and most.endswith(line), most
    text = view("profile", option, stored, width=150).stdout
    assert f"{function} at {line}" in first_row(text), text


def test_planted_bytes_are_those_of_the_load(stored):
    found = profile(json.loads(stored.read_text(encoding="utf-8")), "it")
    entries = ORDERS * EACH * CONNECTIONS * 700
    leak = max(found.sites, key=lambda site: site.inuse.bytes)
    assert leak.inuse.bytes == pytest.approx(entries, rel=0.2)
    assert (4 << 20) < max(site.pinned for site in found.sites) < (32 << 20)
    assert abs(found.estimate - found.exact_bytes) < 2 * found.error


@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
@pytest.mark.parametrize("column", list(PLANTED))
def test_go_tool_pprof_agrees_on_a_server(view, stored, tmp_path, column):
    function, line, index = PLANTED[column]
    assert view("profile", "--pprof", tmp_path / "heap.pb.gz", stored).returncode == 0
    shown = top(tmp_path / "heap.pb.gz", index)
    assert re.search(rf"{function}\S* \S*{line}", shown), shown
