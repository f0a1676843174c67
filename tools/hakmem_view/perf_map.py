# SPDX-License-Identifier: MIT
"""Functions that were made at run time, by the file /tmp/perf-PID.map that their compiler writes. CPython writes one since
3.12 if PYTHONPERFSUPPORT or -X perf asks for it: a row for each Python function. From 3.9 on tools/hakmem_python does the same."""
from __future__ import annotations

import bisect
import os
import re
import shutil
import stat
import time
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Optional

from . import installed, process, python_lines
from .symbols import Frame

MOST = 64 << 20  # bytes of a map
PYTHON = "py::"  # and the function, a colon, its file
MAPS, SMALL, SEARCH = "PYTHONPERFSUPPORT", "PYTHONMALLOC", "PYTHONPATH"
INTERPRETER = re.compile(r"python[0-9.]*[dt]*")
Rows = list[tuple[int, int, str]]  # start, size, name; sorted


def parse(text: str) -> Rows:
    found = []
    for line in text.splitlines():
        words = line.split(maxsplit=2)
        try:
            found.append((int(words[0], 16), int(words[1], 16), words[2]))
        except (ValueError, IndexError):
            continue
    return sorted(found)


def _read(path: str, owners: tuple[int, ...], since: float = 0.0) -> str:
    """Nothing if somebody else wrote it, or an earlier process with that number."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(file, encoding="utf-8", errors="replace") as opened:
        found = os.fstat(file)
        is_right = stat.S_ISREG(found.st_mode) and found.st_size <= MOST and found.st_uid in owners and found.st_mtime >= since
        return opened.read() if is_right else ""


def of_process(pid: int) -> Rows:
    """Of one that lives, perhaps in a container, where it has another number."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        inner = int(next((line for line in status.splitlines() if line.startswith("NSpid:")), f"NSpid: {pid}").split()[-1])
        return parse(_read(process.rooted(pid, f"/tmp/perf-{inner}.map"), (0, os.stat(f"/proc/{pid}").st_uid),
                           time.time() - (process.uptime(pid) or 0.0) - 1))
    except (OSError, ValueError):
        return []


def of_ended(pid: int, since: float, is_ours: bool) -> Rows:
    """Of a program that we started at that time. `is_ours`: we asked for the map, and remove it if Python wrote it."""
    path = f"/tmp/perf-{pid}.map"
    rows = parse(_read(path, (os.geteuid(),), since - 1))
    if is_ours and any(name.startswith(PYTHON) for _, _, name in rows[:1]):
        try:
            os.unlink(path)
        except OSError:
            pass
    return rows


def wish(program: list[str]) -> dict[str, str]:
    """What to add to the environment of a program that is Python, or a script for it: its functions become known, and its
    small objects come from malloc. What the user set stays. One without its global lock refuses the second. The third leads
    CPython 3.9 to 3.11 to what names their functions."""
    words = _arguments(program)
    if words is None or refusal(program):
        return {}
    has_option = any(one == "-Xperf" or one == "-X" and after == "perf" for one, after in zip(words, [*words[1:], ""]))
    is_free = Path(os.path.realpath(shutil.which(program[0]) or program[0])).name.rstrip("d").endswith("t")
    wishes = {**({} if has_option else {MAPS: "1"}), **({} if is_free else {SMALL: "malloc"})}
    found = {key: value for key, value in wishes.items() if key not in os.environ}
    if has_option or {**found, **os.environ}.get(MAPS, "0") not in ("", "0"):
        found.update(search())
    return found


def search() -> dict[str, str]:
    """The folder of our sitecustomize before all others."""
    folder = str(installed.PYTHON)
    return {} if ":" in folder else {SEARCH: ":".join(filter(None, (folder, os.environ.get(SEARCH))))}


def _arguments(program: list[str]) -> Optional[list[str]]:
    """Of the Python that runs it; None: it is another program."""
    path = shutil.which(program[0]) or program[0]
    if INTERPRETER.fullmatch(Path(path).name):
        return program[1:]
    try:
        with open(path, "rb") as file:
            words = file.readline(256).decode("utf-8", "replace").split()
    except OSError:
        return None
    at = next((at for at, word in enumerate(words) if INTERPRETER.fullmatch(Path(word.lstrip("#!")).name)), None)
    return words[at + 1:] + [path] if at is not None and words[0].startswith("#!") else None


def refusal(program: list[str]) -> str:
    """An option of Python that makes it read no variables; empty: none."""
    return next((f"-{letter}" for letter in _letters(_arguments(program) or []) if letter in "EI"), "")


def _letters(words: list[str]) -> str:
    """Options of one letter, before the program."""
    found, left = "", list(words)
    while left and left[0].startswith("-") and left[0] not in ("-", "--"):
        word = left.pop(0)
        if word.startswith("--"):
            left = left[word == "--check-hash-based-pycs":]
            continue
        for at, letter in enumerate(word[1:], 1):
            found += letter
            if letter in "cm":
                return found
            if letter in "WX":
                left = left[word[at + 1:] == "":]
                break
    return found


def silence(program: list[str], wish_: dict[str, str], rows: Rows) -> str:
    """Why no function of a Python was named that was asked for it; empty if one was."""
    if MAPS not in wish_ or any(name.startswith(PYTHON) for _, _, name in rows):
        return ""
    if "S" in _letters(_arguments(program) or []):
        return "before CPython 3.12 -S hides what names functions"
    if ":" in str(installed.PYTHON):
        return f"before CPython 3.12 a folder with a colon hides what names functions: {installed.PYTHON}"
    return "CPython does so from 3.9 on if it has ctypes, may make memory executable and write to /tmp"


@lru_cache(maxsize=65536)
def frame(name: str, pid: int = 0) -> Frame:
    """Of a row's name. A line is that of Python's `def`."""
    function, _, file = name.removeprefix(PYTHON).partition(":")
    if not name.startswith(PYTHON) or not file:
        return Frame(name, "", 0, False)
    own = re.fullmatch(r"(.*)@(\d+)", function)
    if own:
        function, line = python_lines.whole(_place(file, pid), own[1], int(own[2]))
        return Frame(function, file, line, False, True)
    return Frame(function, file, python_lines.lines(_place(file, pid)).get(function, 0), False, True)


def _place(file: str, pid: int) -> str:
    if file.startswith("/"):
        return process.rooted(pid, file) if pid else file
    return f"/proc/{pid}/cwd/{file}" if pid else file


def names(rows: Rows, addresses: Iterable[int], pid: int = 0) -> dict[int, Frame]:
    """Of the return addresses that lie in one of the functions. `pid`: of the process if it lives."""
    starts = [row[0] for row in rows]
    found = {}
    for address in addresses:
        at = bisect.bisect_right(starts, address - 1) - 1
        if at >= 0 and address - 1 < rows[at][0] + rows[at][1]:
            found[address] = frame(rows[at][2], pid)
    return found


def is_interpreter(name: str, path: str) -> bool:
    """Whether a mapped file is CPython itself, a module of its library, or what names its functions."""
    return re.match(r"(?:lib)?python\d", name) is not None or "/lib-dynload/" in path or path.endswith("/hakmem/python/functions.so")


def is_library(frame_: Optional[Frame]) -> bool:
    """Whether a Python function is of the standard library."""
    return frame_ is not None and frame_.is_python and re.search(
        r"^<frozen |/lib(?:64)?/python3\.\d+t?/(?!(?:site|dist)-packages/)", frame_.file) is not None
