# SPDX-License-Identifier: MIT
"""Runs the user's program on hakmem with a report, a map or a profile written at its end."""
from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, NoReturn, Optional

from . import last_look, observer, perf_map
from .errors import ViewError, end
from .installed import COMMAND as LAUNCHER
from .wording import count

ASKED = "report:{},report_file:{}/%p"
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
MAIN = 2  # times as large as that of the program must be the largest report of another process to be taken for its own
SIZES = re.compile(rb'"(?:rss_bytes|live_bytes|mapped)":(\d+)|mapped_bytes +(\d+)|RSS is ([\d.]+) ([KMGT]?)')


@dataclass
class Ended:
    """How it ended, and what it left."""

    status: int  # as a shell tells it: 128 and the signal's number
    pid: int
    report: Optional[bytes]
    others: int = 0  # reports of other processes that it started
    code: perf_map.Rows = field(default_factory=list)  # functions that it made at run time
    signal: int = 0  # that ended it

    def how(self) -> str:
        """In words."""
        return f"ended by {signal.Signals(self.signal).name}" if self.signal in set(signal.Signals) else f"status {self.status}"


def given() -> list[str]:
    """The user's options, without their values."""
    return [re.split("[:=]", part)[0].strip() for part in os.environ.get("HAKMEM_OPTIONS", "").split(",")]


def left_aside() -> list[str]:
    """Of the user's options: those that cannot be in force, because ours are."""
    return [key for key in ("report", "report_file") if key in given()]


@contextlib.contextmanager
def _folder(report: str) -> Iterator[Path]:
    """A folder whose path, without links in it, can stand within HAKMEM_OPTIONS."""
    above = os.path.realpath(tempfile.gettempdir())
    made = tempfile.mkdtemp(prefix=f"hakmem-{report}-", dir=os.path.realpath("/tmp") if set(above) & set(",:% \t\n") else above)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _start_and_wait(command: list, environment: dict[str, str]) -> tuple[int, int]:
    """Its PID and status, negative if it is a signal's number. Signals for us are for it, from before it starts; the keyboard's
    reach it anyway."""
    child: Optional[subprocess.Popen] = None
    early: list[int] = []

    def pass_on(number: int, _) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)
    wanted = {**dict.fromkeys(PASSED_ON, pass_on), signal.SIGINT: lambda *_: None}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()
              if signal.getsignal(number) is not signal.SIG_IGN}  # what we ignore it ignores, too (nohup)
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
    return child.pid, status


def weight(report: bytes) -> float:
    """The memory of its process, by what it states, else its length."""
    sizes = [float(one[0] or one[1]) if one[0] or one[1] else float(one[2]) * 1024 ** " KMGT".index(one[3].decode() or " ")
             for one in SIZES.findall(report[:1 << 16])]
    return max([*sizes, len(report) / (1 << 20)])


def _chosen(reports: dict[Path, bytes], own: Path) -> Optional[Path]:
    """The program's own; that of a process that it started if it has none, or is but a shell beside that one."""
    largest = max(reports, key=lambda one: weight(reports[one]), default=None)
    if largest is None or own not in reports:
        return largest
    return largest if weight(reports[largest]) > MAIN * weight(reports[own]) else own


def _read(path: Path, looks: last_look.Looks) -> bytes:
    """A report; what a process has kept that could make none, as the report that it would have made."""
    if not observer.is_kept(path):
        return path.read_bytes()
    try:
        return looks.complete(path.name, observer.Observed(str(path)).read("profile", "--format", "json"))
    except ViewError:
        return b""


def _found(looks: last_look.Looks, pid: int, since: float, are_ours: bool) -> tuple[Optional[bytes], int, perf_map.Rows]:
    """The report, and the functions of run time of its process. Maps that we asked for are removed, of all processes with a
    report."""
    folder = looks.folder
    reports = {one: left for one in sorted(folder.iterdir()) if (left := _read(one, looks))}
    chosen = _chosen(reports, folder / str(pid))
    maps = {one: perf_map.of_ended(int(one.name), since, are_ours) for one in reports if one.name.isdigit()}
    return reports.get(chosen), len(reports) - (chosen is not None), maps.get(chosen, [])


def run(program: list[str], options: list[str], report: str = "map", more: str = "",
        wish: Optional[dict[str, str]] = None) -> Ended:
    """`options`: of `./hakmem run`; `report`: what is written at its end; `more`: of HAKMEM_OPTIONS, after what the
    user gave; `wish`: of the environment."""
    if shutil.which(program[0]) is None:
        raise ViewError(f"there is no program '{program[0]}' that can be started")
    with _folder(report) as folder:
        theirs = os.environ.get("HAKMEM_OPTIONS", "")
        words = ",".join(word for word in (theirs, more, ASKED.format(report, folder)) if word)
        sys.stdout.flush()
        since = time.time()
        with last_look.Looks(folder) as looks:
            pid, status = _start_and_wait([LAUNCHER, "run", *options, "--", *program],
                                          {**os.environ, **(wish or {}), "HAKMEM_OPTIONS": words})
        left, others, code = _found(looks, pid, since, perf_map.MAPS in (wish or {}))
        return Ended(status if status >= 0 else 128 - status, pid, left, others, code, max(0, -status))


def _end_as(ended: Ended) -> int:
    """As the program did: by its signal, if it was ended by one."""
    if ended.signal:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core file is enough
        with contextlib.suppress(OSError):
            signal.signal(ended.signal, signal.SIG_DFL)
        os.kill(os.getpid(), ended.signal)
    return ended.status


def report(words: list[str]) -> NoReturn:
    """`run --report X -- PROGRAM`, for launch.sh: X, options of run, "--", the program. Of all processes that leave a report one is
    shown, as a shell that starts a program leaves two."""
    end(lambda: _report(words))


def _report(words: list[str]) -> int:
    kind, *options = words[:words.index("--")]
    program = words[words.index("--") + 1:]
    ended = run(program, options, kind)
    if ended.report is None:
        print(f"hakmem: {os.path.basename(program[0])} left no report ({ended.how()}): one is written when a process on hakmem ends by exit",
              file=sys.stderr)
    else:
        sys.stderr.buffer.write(ended.report)
        sys.stderr.flush()
    if ended.others:
        print(f"hakmem: {count(ended.others, 'other process')} left a report, too; --report {kind} FILE writes all, %p in FILE being the PID",
              file=sys.stderr)
    return _end_as(ended)
