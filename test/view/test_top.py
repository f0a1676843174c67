# SPDX-License-Identifier: MIT
"""The live views of `top` and `profile`: rates, sizes, keys, and the end of the process."""
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import xml.etree.ElementTree

import pytest
from conftest import asked, command
from fake_observer import document
from rich.console import Console

from hakmem_view import frame, observer, plain_views, terminal, top
from hakmem_view.frame import Head, Sample
from hakmem_view.model import Stats

HEAD = Head(4711, "program --with [markup] " + "and a long line " * 20, 1.0)


def sample(seconds: float, **more) -> Sample:
    return Sample(Stats.of({**document("/stats.json", 4711, seconds), **more}), seconds, 100 << 20, 3700.0)


def lines(width: int, height: int, now: Sample | None = None) -> list[str]:
    out = Console(width=width, height=height, highlight=False, color_system=None)
    with out.capture() as found:
        out.print(frame.render(HEAD, sample(1.0), now or sample(3.0), width, height))
    return found.get().splitlines()


@pytest.mark.parametrize("width, height", [(80, 24), (200, 50), (40, 10), (150, 24), (120, 80), (20, 5), (300, 100)])
def test_frame_fits(width, height):
    found = lines(width, height)
    assert len(found) <= height and max(map(len, found)) <= width


def test_frame_of_80_by_24_has_everything():
    text = "\n".join(lines(80, 24))
    for word in ("4711", "program --with [markup]", "RSS 100 MiB", "up 1 h 01 min", "held 70.6 MiB",
                 "refill",
                 "Events per second  slow paths only", "Threads by cached bytes (4)",
                 "full bar: 71.2 KiB",
                 "unfilled 2.20 MiB"):
        assert word in text
    assert 20 < len(text.splitlines())
    assert len(lines(80, 24, Sample(Stats.of({"schema": 1}), 3.0))) <= 24


def test_rates_are_differences_by_time():
    assert dict(frame.rates(sample(1.0), sample(3.0)))["refill"] == pytest.approx(1000)
    assert frame.rates(sample(1.0), sample(1.0)) == []
    fallen = sample(3.0,
                    events={"refill": 1, "new": 4,
                            "asked_bytes": 1 << 40})  # bytes are no event
    assert frame.rates(sample(1.0), fallen) == [("new", 2.0)]


def test_header_and_rows_agree_on_what_is_free():
    now = sample(3.0)
    now.stats.bytes.update(slab_free=sum(row.free * row.bytes for row in now.stats.classes), hole=1 << 20)
    text = "\n".join(lines(120, 40, now))
    assert f"free {terminal.size(now.stats.bytes['slab_free'])} " in text and "1.00 MiB of them given back" in text


def test_blocks_above_the_classes_have_rows():
    stats = Stats.of({"bytes": {"large": 5 << 20, "huge": 900 << 20}, "counts": {"large": 13, "huge": 3},
                      "classes": [{"bytes": 64, "slabs": 2, "live": 1000, "free": 24}, {"bytes": 80, "slabs": 0}]})
    assert [name for name, _ in stats.rows()] == ["huge", "large", "64 B"]
    text = "\n".join(lines(100, 40, Sample(stats, 3.0)))
    assert re.search(r"^ +huge +3 +900 MiB", text, re.M) and re.search(r"^ +large +13 +5.00 MiB", text, re.M)
    text = "\n".join(plain_views._frame(os.getpid(), stats, stats, 1.0, 40))  # pylint: disable=protected-access
    assert re.search(r"^ +huge +3 +900 MiB", text, re.M)


def test_svg_is_well_formed_and_names_no_host(program, view, tmp_path):
    done = view("top", "--interval", "0.1", "--svg", tmp_path / "top.svg", program().pid, width=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"hakmem: picture: {tmp_path / 'top.svg'}\n")
    text = (tmp_path / "top.svg").read_text(encoding="utf-8")
    assert xml.etree.ElementTree.fromstring(text).tag.endswith("svg")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "") and "Classes" in text


def test_once_says_that_the_process_has_ended(program, monkeypatch, capsys):
    one, taken = program(), top.sample

    def take_and_kill(watch):
        first = taken(watch)
        one.kill()
        one.wait()
        return first
    monkeypatch.setattr(top, "sample", take_and_kill)
    top.show(observer.find(str(one.pid)), 1.0, True, None)
    assert capsys.readouterr().out == f"process {one.pid} has ended\n"


# --- on a terminal --------------------------------------------------------------------------------


class Terminal:
    """The tool on a terminal of its own."""

    def __init__(self, *words, size=(24, 80)):
        self.pid, self.file = pty.fork()
        if not self.pid:
            # Not our own environment: the readline that pytest loads has put a width into it.
            kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            os.execve(sys.executable, command(*words), {**kept, "TERM": "xterm-256color"})
        self.resize(*size)
        self.text, self.has_ended = "", False

    def resize(self, height: int, width: int) -> None:
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("4H", height, width, 0, 0))

    def read(self) -> bool:
        """Whether there was something before the end."""
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def wait_for(self, word: str, times: int = 1) -> None:
        while self.text.count(word) < times:
            assert self.read(), self.text[-3000:]

    def press(self, key: bytes) -> str:
        """Ends by this key; what it had written."""
        os.write(self.file, key)
        return self.end()

    def end(self) -> str:
        while self.read():
            pass
        self.has_ended = True
        assert os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0, self.text[-3000:]
        assert "Traceback" not in self.text and "interrupted" not in self.text
        return self.text


@pytest.fixture
def terminal_of():
    """terminal_of("top", pid) → the tool; it is gone after the test."""
    started = []

    def start(*words, **more) -> Terminal:
        started.append(Terminal(*words, **more))
        return started[-1]
    yield start
    for one in started:
        if not one.has_ended:
            os.kill(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)


VIEWS = {"top": (["top", "--interval", "0.2"], "refill"),
         "profile": (["profile"], "program+0x1100")}
views = pytest.mark.parametrize("words, shown", VIEWS.values(), ids=list(VIEWS))


@views
@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_live_view_ends_by_key(program, terminal_of, words, shown, key):
    one = program()
    tool = terminal_of(*words, one.pid)
    tool.wait_for(shown, 2)
    text = tool.press(key)
    assert "\x1b[?1049h" in text and "\x1b[?1049l" in text  # a screen of its own, given back
    if words == ["profile"]:  # the table stays on the screen, sampling does not go on
        after = text.partition("\x1b[?1049l")[2]
        assert shown in after and "Functions by bytes in use" in after and asked(one) == ["524288", "0"]


@views
def test_live_view_ends_with_the_process(program, terminal_of, words, shown):
    one = program("on")
    tool = terminal_of(*words, one.pid)
    tool.wait_for(shown)
    one.kill()
    one.wait()
    after = tool.end().partition("\x1b[?1049l")[2]
    assert (shown if words == ["profile"] else f"process {one.pid} has ended") in after


@views
def test_live_view_says_that_the_process_is_stopped(program, terminal_of, words, shown):
    one = program("on")
    tool = terminal_of(*words, one.pid)
    tool.wait_for(shown)
    one.send_signal(signal.SIGSTOP)
    tool.wait_for(top.STOPPED)
    one.send_signal(signal.SIGCONT)
    tool.press(b"q")


def test_live_view_follows_the_terminal_size(program, terminal_of):
    tool = terminal_of("top", "--interval", "0.2", program().pid)
    tool.wait_for("refill")
    tool.resize(50, 200)
    tool.wait_for("superslab unmap")
    tool.press(b"q")


def test_leaks_grow_while_they_are_watched(program, terminal_of):
    tool = terminal_of("profile", "--leaks", program("on").pid)
    tool.wait_for("+", 3)
    assert "Growth is that of" in tool.press(b"q")
