# SPDX-License-Identifier: MIT
"""Functions that were made at run time, by the file /tmp/perf-PID.map that their compiler writes. CPython writes one since
3.12 if PYTHONPERFSUPPORT or -X perf asks for it: a row for each Python function."""
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

from . import process, python_lines
from .symbols import Frame

MOST = 64 << 20  # bytes of a map
PYTHON = "py::"  # and the function, a colon, its file
MAPS, SMALL = "PYTHONPERFSUPPORT", "PYTHONMALLOC"
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
    small objects come from malloc. What the user set stays. An older Python takes no notice of the first; one without its
    global lock refuses the second."""
    if not _is_python(program[0]):
        return {}
    words = [*program, ""]
    has_option = any(one == "-Xperf" or one == "-X" and after == "perf" for one, after in zip(words, words[1:]))
    is_free = Path(os.path.realpath(shutil.which(program[0]) or program[0])).name.rstrip("d").endswith("t")
    wishes = {**({} if has_option else {MAPS: "1"}), **({} if is_free else {SMALL: "malloc"})}
    return {key: value for key, value in wishes.items() if key not in os.environ}


def _is_python(program: str) -> bool:
    path = shutil.which(program) or program
    if INTERPRETER.fullmatch(Path(path).name):
        return True
    try:
        with open(path, "rb") as file:
            words = file.readline(256).decode("utf-8", "replace").split()
    except OSError:
        return False
    return bool(words) and words[0].startswith("#!") and any(INTERPRETER.fullmatch(Path(word.lstrip("#!")).name)
                                                            for word in words)


@lru_cache(maxsize=65536)
def frame(name: str, pid: int = 0) -> Frame:
    """Of a row's name. A line is that of Python's `def`."""
    function, _, file = name.removeprefix(PYTHON).partition(":")
    if not name.startswith(PYTHON) or not file:
        return Frame(name, "", 0, False)
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
    """Whether a mapped file is CPython itself, or a module of its library."""
    return re.match(r"(?:lib)?python\d", name) is not None or "/lib-dynload/" in path


def is_library(frame_: Optional[Frame]) -> bool:
    """Whether a Python function is of the standard library."""
    return frame_ is not None and frame_.is_python and re.search(
        r"^<frozen |/lib(?:64)?/python3\.\d+t?/(?!(?:site|dist)-packages/)", frame_.file) is not None
