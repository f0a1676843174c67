# SPDX-License-Identifier: MIT
"""Debug data and programs that are not here come from the servers of DEBUGINFOD_URLS, by build id; what is not asked for does
not. The server is one of ours on 127.0.0.1."""
import http.server
import subprocess
import threading

import leaky
import pytest
from test_symbols import BEGIN, mapped, program  # noqa: F401  (a fixture)

from hakmem_view import debuginfod, symbols
from hakmem_view.elf import Elf

pytestmark = leaky.COMPILER


def at_leak(path) -> int:
    """Looked up by a tool that would ask, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("DEBUGINFOD_URLS")
        return BEGIN + leaky.calls(path)["leak_record", "malloc"]


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` by path; notes who asks."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.files: dict[str, tuple[int, bytes, int]] = {}  # status, body, its length as it is told
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # noqa: N802 - its name is given
        self.server.asked.append(self.path)
        status, body, length = self.server.files.get(self.path, (404, b"no", 2))
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("DEBUGINFOD_URLS", f"{made.url}/first/ {made.url}")
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        monkeypatch.setattr(debuginfod, "TOOL", "gone-tool")
        monkeypatch.setattr(symbols, "DEBUG", tmp_path / "none")
        debuginfod.find.cache_clear()
        yield made
        made.shutdown()
        thread.join()
        debuginfod.find.cache_clear()


@pytest.fixture
def parts(program, tmp_path):
    """The program without names, and its debug data."""
    debug, stripped = tmp_path / "data", tmp_path / "leaky"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-all", "-o", stripped, program], check=True)
    return stripped, debug.read_bytes()


def line(frame: symbols.Frame) -> tuple[str, int]:
    return frame.function, frame.line


LEAK = ("leak_record", leaky.line_of("the line of the leak"))


def test_debug_data_comes_by_build_id_once(server, parts, program, capsys):
    stripped, data = parts
    path = f"/buildid/{Elf.open(str(program)).build_id}/debuginfo"
    server.files[path] = (200, data, len(data))
    address = at_leak(program)
    for _ in range(2):
        assert line(symbols.names([address], [mapped(stripped)])[address][-1]) == LEAK
        debuginfod.find.cache_clear()  # as another command would
    assert server.asked == [f"/first{path}", path]
    said = capsys.readouterr().err
    assert said.startswith(f"hakmem: debug data of leaky from {server.url}: ") and said.count("\n") == 1


def test_program_of_another_machine_is_found(server, program):
    build = Elf.open(str(program)).build_id
    server.files[f"/buildid/{build}/executable"] = (200, program.read_bytes(), program.stat().st_size)
    address = at_leak(program)
    assert line(symbols.names([address], [mapped("/gone/leaky", build)])[address][-1]) == LEAK


@pytest.mark.parametrize("answer, said", [
    ((500, b"", 0), "500 Internal Server Error"), ((200, b"\x7fELF" + bytes(100), 200), "104 of 200 bytes came"), ((404, b"", 0), ""),
    ((200, b"no program" * 20, 200), "")])
def test_answer_that_is_none_leaves_the_names_that_are_here(server, parts, program, tmp_path, capsys, answer, said):
    stripped, _ = parts
    server.files[f"/buildid/{Elf.open(str(program)).build_id}/debuginfo"] = answer
    address = at_leak(program)
    assert symbols.names([address], [mapped(stripped)])[address][0].function != "leak_record"
    err = capsys.readouterr().err
    assert said in err if said else "does not give" not in err
    assert len(list((tmp_path / "cache").rglob("*/*"))) == (answer[1].startswith(b"no program"))


def test_nobody_is_asked_without_the_variable_nor_for_what_needs_it_not(server, parts, program, monkeypatch):
    stripped, data = parts
    address = at_leak(program)
    assert line(symbols.names([address], [mapped(program)])[address][-1]) == LEAK  # its debug data is in it
    assert not debuginfod.is_wanted("/lib/libc.so.6") and debuginfod.is_wanted("/opt/libcache.so")
    monkeypatch.setenv("DEBUGINFOD_URLS", " ")
    symbols.names([address], [mapped(stripped)])
    assert server.asked == [] and data
    for build in ("", "xyz", "../../x", "12"):
        assert debuginfod.find(build, "debuginfo", "x") is None


def test_tool_of_the_system_is_used_where_it_is(server, parts, program, tmp_path, monkeypatch):
    stripped, data = parts
    (tmp_path / "found").write_bytes(data)
    (tmp_path / "debuginfod-find").write_text(f"#!/bin/sh\n[ \"$1\" = debuginfo ] && echo {tmp_path / 'found'}\n", encoding="utf-8")
    (tmp_path / "debuginfod-find").chmod(0o755)
    monkeypatch.setattr(debuginfod, "TOOL", str(tmp_path / "debuginfod-find"))
    address = at_leak(program)
    assert line(symbols.names([address], [mapped(stripped)])[address][-1]) == LEAK and server.asked == []
