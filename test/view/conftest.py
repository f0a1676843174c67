# SPDX-License-Identifier: MIT
"""Programs to look into, and the commands as a user starts them."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fake_observer
import forked
import pytest

import hakmem_view.cli  # noqa: F401  (loaded once, for all commands)
from hakmem_view import observer

HERE = Path(__file__).resolve().parent
TOOL = HERE.parent.parent / "tools" / "view.py"
ROOT = TOOL.parent.parent
OBSERVER = HERE / "fake_observer.py"
os.environ.pop("DEBUGINFOD_URLS", None)  # no test asks servers but its own


def command(*words, plain: bool = False) -> list[str]:
    """A command in a Python of its own, without any package if it is plain; the observer is the fake one."""
    code = (f"import runpy, sys; sys.path.insert(0, {str(TOOL.parent)!r}); from hakmem_view import observer; "
            f"observer.PROGRAM = {str(OBSERVER)!r}; sys.argv[0] = {str(TOOL)!r}; runpy.run_path({str(TOOL)!r}, run_name='__main__')")
    return [sys.executable, *["-S"] * plain, "-c", code, *map(str, words)]


def asked(one) -> list[str]:
    """The rates that a fake process was asked to sample at."""
    return fake_observer.told(one.mode, one.folder)["asked"]


def sample(name: str) -> dict:
    """What a process told once."""
    return json.loads((fake_observer.SAMPLES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Starts a fake program in a mode: program(mode) → the process. What observes it is fake, too."""
    monkeypatch.setattr(observer, "PROGRAM", OBSERVER)
    started = []

    def start(mode: str = "ok") -> subprocess.Popen:
        folder = tmp_path / f"fake-{len(started)}"
        folder.mkdir()
        one = subprocess.Popen([sys.executable, OBSERVER, "be", mode, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(one)
        assert one.stdout.readline() == b"ready\n"
        one.mode, one.folder = mode, folder
        return one
    yield start
    for one in started:
        one.kill()
        one.communicate()


def _environment(width: int, more: dict) -> dict:
    kept = {key: value for key, value in os.environ.items() if key not in ("HAKMEM_OPTIONS", "FORCE_COLOR")}
    return {**kept, "COLUMNS": str(width), "LINES": "24", "TERM": "xterm-256color", **more}


@pytest.fixture
def view():
    """view("stats", pid, width=80) → what came out, as text; PYTHON…: in a Python of its own."""
    def run(*words, width: int = 80, timeout: float = 60, **more) -> subprocess.CompletedProcess:
        if not any(name.startswith("PYTHON") for name in more):
            return forked.run(TOOL, list(map(str, words)), _environment(width, more), timeout)
        return subprocess.run(command(*words), capture_output=True, text=True, timeout=timeout,
                              env=_environment(width, more), check=False)
    return run


@pytest.fixture
def refuses(view):
    """refuses("stats", pid) → its one line on standard error."""
    def run(*words, **more) -> str:
        done = view(*words, **more)
        assert done.returncode == 2, done
        assert done.stdout == ""
        assert done.stderr.startswith("hakmem: ") and done.stderr.count("\n") == 1, done.stderr
        return done.stderr
    return run


@pytest.fixture
def as_nobody():
    """as_nobody(imports, call) → the error that another user gets from a call."""
    def run(imports: str, call: str) -> str:
        code = (f"import os, sys; sys.path.insert(0, {str(TOOL.parent)!r})\n{imports}\n"
                "from hakmem_view.errors import ViewError\n"
                "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                f"try:\n    {call}\nexcept ViewError as error:\n    print(error)")
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              check=True).stdout
    return run
