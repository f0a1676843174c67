# SPDX-License-Identifier: MIT
"""Runs the user's program on hakmem with a map or a profile written at its end."""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from . import perf_map
from .errors import ViewError
from .installed import COMMAND as LAUNCHER

ASKED = "report:{},report_file:{}/%p"
PASSED_ON = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Ended:
    """How it ended, and what it left."""

    status: int  # as a shell tells it: 128 and the signal's number
    pid: int
    report: Optional[bytes]
    others: int = 0  # reports of other processes that it started
    code: perf_map.Rows = field(default_factory=list)  # functions that it made at run time

    def how(self) -> str:
        """In words."""
        try:
            return f"ended by {signal.Signals(self.status - 128).name}"
        except ValueError:
            return f"status {self.status}"


def given() -> list[str]:
    """The user's options, without their values."""
    return [re.split("[:=]", part)[0].strip() for part in os.environ.get("HAKMEM_OPTIONS", "").split(",")]


def left_aside() -> list[str]:
    """Of the user's options: those that cannot be in force, because ours are."""
    return [key for key in ("report", "report_file") if key in given()]


def _folder() -> str:
    """A folder whose path can stand within HAKMEM_OPTIONS."""
    made = tempfile.gettempdir()
    return "/tmp" if set(made) & set(",:% \t\n") else made


def _start_and_wait(command: list, environment: dict[str, str]) -> tuple[int, int]:
    """Its PID and status; signals for us are for it, from before it starts. The keyboard's reach it anyway."""
    child: Optional[subprocess.Popen] = None
    early: list[int] = []

    def pass_on(number: int, _) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)
    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        child = subprocess.Popen(command, env=environment)
        for number in early:
            child.send_signal(number)
        status = child.wait()
    except OSError as error:
        raise ViewError(f"cannot start {command[0]}: {error.strerror}") from error
    finally:
        for number, old in before.items():
            signal.signal(number, old)
    return child.pid, status if status >= 0 else 128 - status


def _found(folder: Path, pid: int, since: float, are_ours: bool) -> tuple[Optional[bytes], int, perf_map.Rows]:
    """Its report, that of another process if that is the only one (a program that starts another and waits); and its
    functions of run time. Maps that we asked for are removed, of all processes with a report."""
    reports = sorted(folder.iterdir())
    own = folder / str(pid)
    chosen = own if own in reports else reports[0] if len(reports) == 1 else None
    maps = {one: perf_map.of_ended(int(one.name), since, are_ours) for one in reports if one.name.isdigit()}
    return (chosen.read_bytes() if chosen else None), len(reports) - (chosen is not None), maps.get(chosen, [])


def run(program: list[str], options: list[str], report: str = "map", more: str = "",
        wish: Optional[dict[str, str]] = None) -> Ended:
    """`options`: of `./hakmem run`; `report`: what is written at its end; `more`: of HAKMEM_OPTIONS, after what the
    user gave; `wish`: of the environment."""
    if shutil.which(program[0]) is None:
        raise ViewError(f"there is no program '{program[0]}' that can be started")
    with tempfile.TemporaryDirectory(prefix=f"hakmem-{report}-", dir=_folder(), ignore_cleanup_errors=True) as folder:
        theirs = os.environ.get("HAKMEM_OPTIONS", "")
        words = ",".join(word for word in (theirs, more, ASKED.format(report, folder)) if word)
        sys.stdout.flush()
        since = time.time()
        pid, status = _start_and_wait([LAUNCHER, "run", *options, "--", *program],
                                      {**os.environ, **(wish or {}), "HAKMEM_OPTIONS": words})
        left, others, code = _found(Path(folder), pid, since, perf_map.MAPS in (wish or {}))
        return Ended(status, pid, left, others, code)
