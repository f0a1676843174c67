# SPDX-License-Identifier: MIT
"""A running process or a core file as hakmem-observe reads it: from outside, whatever the process was started with. It runs
once for a document, and goes on for a live view."""
from __future__ import annotations

import os
import re
import select
import stat
import struct
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import process
from .elf import Elf
from .errors import Absent, Closed, Refused, Slow, ViewError
from .installed import NAME, OBSERVER, tree
from .model import NEWER, parse

PROGRAM = OBSERVER
PREFIX = "hakmem-observe: "
NOUNS = {"stats": "statistics", "explain": "explanation"}
MOST_BYTES = 256 << 20  # of a document
PIECE = 1 << 16
KEPT = b"hakmem profile\n\0"
NOTE = b"hakmem\0"  # src/door/door.h
KEPT_HEAD = 56  # bytes that tell one process's file from another's: PID, and when it began
DOOR_LIBRARY = slice(12, 32)  # of hak_door_t
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
REFUSALS = ("may not be read", "is another user's", "Permission denied", "Operation not permitted")
NOT_YET = 2  # status of `tell`
PS_SECONDS = 5.0  # for a process of a list
TELL_SECONDS = 5.0  # for a process to do what it is told: it does at one of its next allocations


def kept_head(path: Path) -> bytes:
    """The first bytes of a profile that a process has kept in a file while it lived (observe/kept.h); of others none."""
    try:
        with open(path, "rb") as file:
            head = file.read(KEPT_HEAD)
    except OSError:
        return b""
    return head if head.startswith(KEPT) else b""


def is_kept(path: Path) -> bool:
    return bool(kept_head(path))


def need() -> None:
    """Says at once if it is not there."""
    if not os.access(PROGRAM, os.X_OK):
        raise _missing()


def _missing() -> ViewError:
    return ViewError(f"{PROGRAM} is missing: " + ("install hakmem again" if tree else f"`{NAME} build` makes it"))


def _start(words: tuple[str, ...], is_apart: bool = False) -> subprocess.Popen:
    """Not in the user's folder: a number is a PID, whatever files there are. Apart: Ctrl-C ends us, and we end it."""
    try:
        return subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                start_new_session=is_apart)
    except FileNotFoundError as error:
        raise _missing() from error
    except OSError as error:
        raise ViewError(f"cannot start {PROGRAM}: {error.strerror}") from error


def is_32_bit(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/exe", "rb") as file:
            return file.read(5) == b"\x7fELF\x01"
    except OSError:
        return False


def _permission(pid: int) -> str:
    """What gives the right to read it."""
    if os.geteuid() == 0:
        return "root lacks CAP_SYS_PTRACE here; a container gets it by --cap-add SYS_PTRACE"
    if process.owner(pid) != os.geteuid():
        return f"only {process.user(process.owner(pid))} and root may: use sudo"
    try:
        scope = YAMA.read_text(encoding="ascii").strip()
    except OSError:
        scope = "0"
    if scope == "1":
        return "the kernel lets only root and parents read it: use sudo, or start it with HAKMEM_OPTIONS=observable:1"
    return "only root may, as it is set-uid, has file capabilities or asked for that: use sudo"


def forbidden(pid: int) -> ViewError:
    return Refused(f"{process.called(pid)} cannot be looked into: {_permission(pid)}")


def _failure(text: str, pid: int) -> ViewError:
    """What the observer says, and what to do about it."""
    if not pid:
        return ViewError(f"{text}; {NEWER}" if "with description" in text else text)
    if not process.lives(pid):
        return Closed(f"there is no process {pid}")
    who = process.called(pid)
    if any(refusal in text for refusal in REFUSALS):
        return forbidden(pid)
    if "with description" in text:
        return Refused(f"{who}: {text}; {NEWER}")
    if "does not use hakmem" in text:
        if is_32_bit(pid):
            return ViewError(f"{who} is a program of 32 bits, which hakmem does not serve")
        return Absent(f"{who} does not run on hakmem; start it by {NAME} run -- PROGRAM (`{NAME} check {pid}` says more)")
    if "seccomp filter" in text:
        text = text.partition(";")[0] + "; start it with HAKMEM_OPTIONS=profile_rate:512k"
    own = f"process {pid} "
    return ViewError(f"{who} {text.removeprefix(own)}" if text.startswith(own) else f"{who}: {text}")


def _why_silent(pid: int) -> str:
    """Why a process has not done what it was told, by what it was seen to do for a moment; and what to do."""
    seen: Counter[str] = Counter()
    for _ in range(10):
        seen[process.state(pid)] += 1
        time.sleep(0.02)
    state = seen.most_common(1)[0][0]
    if state in ("S", "D"):
        return "all its threads sleep, and it answers when one of them next allocates: give it some work"
    if state in ("T", "t"):
        return f"it is stopped, by a signal or a debugger; let it go on (kill -CONT {pid})"
    return "it runs, but its threads' caches have served all that they allocated since; ask again"


@dataclass
class Observed:
    """Somebody's memory."""

    target: str  # a PID, or the path of a core file
    pid: int = 0  # in our PID namespace; 0: of a core file
    note: str = ""  # what the observer said beside the document that was read last

    def title(self) -> str:
        kind = "the kept profile" if is_kept(Path(self.target)) else "core file"
        return process.called(self.pid) if self.pid else f"{kind} {process.plain(self.target)}"

    def ended(self) -> bool:
        return bool(self.pid) and not process.lives(self.pid)

    def rss(self) -> Optional[int]:
        """None: that is not known of a core file."""
        return process.rss(self.pid) if self.pid else None

    def read(self, verb: str, *options: str, seconds: Optional[float] = None) -> bytes:
        """A document, as it is; Slow if it takes longer."""
        if verb != "profile" and not self.pid and is_kept(Path(self.target)):
            raise ViewError(f"{self.title()} has samples alone: `{NAME} profile {process.plain(self.target)}` shows them")
        late = threading.Event()

        def end() -> None:
            late.set()
            run.kill()
        with _start((verb, self.target, *options)) as run:
            timer = threading.Timer(seconds or 0.0, end)
            if seconds is not None:
                timer.start()
            body = run.stdout.read(MOST_BYTES + 1)
            timer.cancel()
            if late.is_set():
                raise Slow(f"{self.title()} could not be read within {seconds:g} s")
            if len(body) > MOST_BYTES:
                run.kill()
                raise ViewError(f"{self.what(verb)} has more than {MOST_BYTES >> 20} MiB")
            said = run.stderr.read()
        if run.returncode:
            raise self.failure(said, run.returncode)
        self.note = process.plain(said.decode("utf-8", "replace").strip().removeprefix(PREFIX))
        return body

    def failure(self, said: bytes, status: int) -> ViewError:
        lines = said.decode("utf-8", "replace").splitlines() or [f"hakmem-observe has ended with status {status}"]
        return _failure(process.plain(lines[-1].removeprefix(PREFIX)), self.pid)

    def tell(self, *words: str, seconds: float = TELL_SECONDS, is_brief: bool = False) -> str:
        """Has the process do something at one of its next allocations; Slow if it has not done so in time, but it will, unless it is
        brief. Returns what the observer says."""
        if not self.pid:
            raise ViewError(f"{self.title()} does not change: a running process is wanted")
        with _start(("tell", self.target, *words, "--wait", f"{seconds:g}", *(["--brief"] if is_brief else []))) as run:
            told, said = run.communicate()
        if run.returncode == NOT_YET:
            what = " what another asked, so nothing was asked" if b"nothing was sent" in said else ""
            back = ", so the request was taken back" if b"taken back" in said else ""
            raise Slow(f"{self.title()} has not answered{what} within {seconds:g} s{back}: {_why_silent(self.pid)}")
        if run.returncode:
            raise self.failure(said, run.returncode)
        return told.decode("utf-8", "replace").strip()

    def what(self, verb: str) -> str:
        """How messages call a document."""
        return f"the {NOUNS.get(verb, verb)} of {self.title()}"

    def document(self, verb: str, seconds: Optional[float] = None) -> dict:
        return parse(self.read(verb, "--json", seconds=seconds), self.what(verb))


class Watch:
    """The statistics of a process again and again, from one observer."""

    def __init__(self, where: Observed, seconds: float):
        if not where.pid:
            raise ViewError(f"{where.title()} does not change: a running process is wanted")
        self.where = where
        self.run = _start(("stats", where.target, "--json", "--every", f"{seconds:g}"), is_apart=True)
        self.data = b""

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_) -> None:
        self.run.kill()
        with self.run:
            pass  # waits for it, and closes its pipes

    def next(self, seconds: Optional[float] = None) -> Optional[dict]:
        """The next document, waited for so long, or for ever. None: there is none yet. Closed: the process has ended."""
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self.data:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self.run.stdout], [], [], left)[0]:
                return None
            piece = os.read(self.run.stdout.fileno(), PIECE)
            if not piece:
                said, status = self.run.stderr.read(), self.run.wait()
                if self.where.ended():
                    raise Closed(f"process {self.where.pid} has ended")
                raise self.where.failure(said, status)
            self.data += piece
        line, _, self.data = self.data.partition(b"\n")
        return parse(line, self.where.what("stats"))


def find(word: str) -> Observed:
    """A PID, or the path of a core file."""
    if word.isascii() and word.isdigit():
        if int(word) == 0 or len(word) > 9:
            raise ViewError(f"there is no process {word}")
        process.need()
        if not process.lives(int(word)):
            raise ViewError(f"there is no process {word}")
        return Observed(word, int(word))
    try:
        mode = os.stat(word).st_mode if word else 0
    except OSError:
        mode = 0
    if stat.S_ISSOCK(mode):
        raise ViewError(f"{process.plain(word)} is a socket, which is not needed: name the process by its PID")
    if not stat.S_ISREG(mode):
        raise ViewError(f"{process.plain(word) or 'an empty word'} is neither a PID nor a core file; `{NAME} ps` lists processes")
    return Observed(os.path.abspath(word))


@dataclass
class Listed:
    """A process on hakmem, as `./hakmem ps` shows it."""

    pid: int
    version: str = ""  # of the library; "": not known
    reason: str = ""  # why not


def library_version(path: str) -> str:
    """Of the library that a file is, or has within itself (src/door/door.h); "" if it is none."""
    file = Elf.open(path)
    at, length = file.note_at(NOTE, 1) if file is not None else (0, 0)
    if file is None or length < 8:
        return ""
    way, = struct.unpack_from("<i", file.data, at + 4)
    begin = file.offset(file.address(at + 4) + way)
    text = file.data[begin + DOOR_LIBRARY.start:begin + DOOR_LIBRARY.stop] if begin >= 0 else b""
    found = re.match(rb"\d+\.\d+\.\d+(?=\0)", text)
    return found[0].decode("ascii") if found else ""


def on_hakmem() -> list[int]:
    """The PIDs, as far as we may look: with the library mapped, or within the program."""
    process.need()
    with _start(("ps",)) as run:
        rows = [line.split() for line in run.communicate()[0].decode("utf-8", "replace").splitlines()[1:]]
    listed = {int(row[0]) for row in rows if row and row[0].isdigit()}
    return sorted(listed.union(pid for pid in process.numbers() if process.has_library(pid)))


def all_processes(seconds: float = PS_SECONDS) -> list[Listed]:
    """The largest first. A process that takes longer is listed with that reason."""
    found = []
    for pid in sorted(on_hakmem(), key=lambda one: -(process.rss(one) or 0)):
        try:
            found.append(Listed(pid, str(Observed(str(pid), pid).document("stats", seconds).get("hakmem", ""))))
        except Closed:
            continue  # ended meanwhile
        except ViewError as error:
            if "does not run on hakmem" not in str(error):  # it has the library mapped as data
                found.append(Listed(pid, "", str(error)))
    return found
