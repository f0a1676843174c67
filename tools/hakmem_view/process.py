# SPDX-License-Identifier: MIT
"""What /proc says of a process. Nothing here asks the process itself."""
from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Optional

from .errors import ViewError

LIBRARY = "libhakmem"


def plain(text: str) -> str:
    """Without what could move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def need() -> None:
    """/proc, which some sandboxes and containers lack."""
    if not os.path.isdir("/proc/self"):
        raise ViewError("/proc is not mounted here; without it nothing is known of processes")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: the second may contain anything."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def lives(pid: int) -> bool:
    """Its first thread may have ended before the others."""
    fields = _stat(pid)
    return bool(fields) and (fields[0] not in ("Z", "X") or len(_threads(pid)) > 1)


def state(pid: int) -> str:
    """A letter, as of ps: R: a thread runs; else that of the first that has not ended; "": it is gone."""
    texts = (_read(pid, f"task/{thread}/stat") for thread in sorted(_threads(pid), key=int))
    states = "".join(text.rpartition(")")[2].lstrip()[:1] for text in texts)
    return "R" if "R" in states else (states.strip("ZX") or states)[:1]


def is_filtered(pid: int) -> bool:
    """Whether the system calls of one of its threads pass a seccomp filter, which may kill for those it does not know."""
    return any(line.split()[1:] not in (["0"], []) for thread in _threads(pid)
               for line in _read(pid, f"task/{thread}/status").splitlines() if line.startswith("Seccomp:"))


def name(pid: int) -> str:
    return plain(_read(pid, "comm").strip()) or "?"


def called(pid: int) -> str:
    return f"process {pid} ({name(pid)})"


def command(pid: int) -> str:
    words = _read(pid, "cmdline").rstrip("\0 ").split("\0")
    return plain(" ".join(words)) if words != [""] else name(pid)


def owner(pid: int) -> Optional[int]:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def user(uid: Optional[int]) -> str:
    if uid is None:
        return "an unknown user"
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def uptime(pid: int) -> Optional[float]:
    """Seconds since it was started."""
    try:
        started = int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, float(Path("/proc/uptime").read_text(encoding="ascii").split()[0]) - started)
    except (OSError, ValueError, IndexError):
        return None


def rss(pid: int, key: str = "VmRSS") -> Optional[int]:
    """Resident bytes; with VmHWM the most that there were since it was executed."""
    for line in _read(pid, "status").splitlines():
        words = line.split()
        if words[:1] == [f"{key}:"] and len(words) > 1 and words[1].isdigit():
            return int(words[1]) * 1024
    return None


def thread_names(pid: int) -> dict[int, str]:
    """By thread ID in our PID namespace."""
    return {int(thread): plain(_read(pid, f"task/{thread}/comm").strip()) for thread in _threads(pid)}


def numbers() -> list[int]:
    """Of all processes."""
    need()
    return sorted(int(word) for word in os.listdir("/proc") if word.isdigit())


def has_overwritten_environment(pid: int) -> bool:
    """Whether nothing, or not all, is left of what its program was started with: titles of processes are written over it."""
    text = _read(pid, "environ")
    return bool(text) and ("=" not in text.partition("\0")[0] or "\0\0" in text or not text.endswith("\0"))


def has_library(pid: int) -> Optional[bool]:
    """Whether the shared library is mapped; None if that cannot be known."""
    maps = _read(pid, "maps")
    return LIBRARY in maps if maps else None


def maps_file(pid: int, path: Path) -> bool:
    """Whether it has that file in its memory."""
    return any(line.partition("/")[1:] == ("/", str(path)[1:]) for line in _read(pid, "maps").splitlines())


def rooted(pid: int, path: str) -> str:
    """A path from / as the process sees it, below its root."""
    return f"/proc/{pid}/root{path}"
