# SPDX-License-Identifier: MIT
"""What /proc says of a process. Nothing here asks the process itself."""
from __future__ import annotations

import os
import pwd
import re
from pathlib import Path
from typing import Optional

from .errors import ViewError

ACCEPTS = 0x10000  # of the flags in /proc/net/unix: the socket listens
STREAM = 1
LIBRARY = "libhakmem"
FEW = 16  # descriptors


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
        raise ViewError("/proc is not mounted here; without it nothing is known of processes (a socket's path needs none)")


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
    """A letter, as of ps: Z: its first thread has ended; R: a thread runs; else that of the first; "": it is gone."""
    first = (_stat(pid) or [""])[0]
    others = [_read(pid, f"task/{thread}/stat").rpartition(")")[2].split()[:1] for thread in _threads(pid)]
    return "R" if first != "Z" and ["R"] in others else first


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


def rss(pid: int) -> Optional[int]:
    """Resident bytes."""
    for line in _read(pid, "status").splitlines():
        words = line.split()
        if words[:1] == ["VmRSS:"] and len(words) > 1 and words[1].isdigit():
            return int(words[1]) * 1024
    return None


def thread_names(pid: int) -> dict[int, str]:
    """By thread ID in our PID namespace."""
    return {int(thread): plain(_read(pid, f"task/{thread}/comm").strip()) for thread in _threads(pid)}


def numbers() -> list[int]:
    """Of all processes."""
    need()
    return sorted(int(word) for word in os.listdir("/proc") if word.isdigit())


def options(pid: int) -> dict[str, str]:
    """What HAKMEM_OPTIONS held when its program was started, as far as we may know."""
    for entry in _read(pid, "environ").split("\0"):
        if entry.startswith("HAKMEM_OPTIONS="):
            pairs = (re.split("[:=]", part, maxsplit=1) for part in entry.partition("=")[2].split(","))
            return {pair[0].strip(): plain(pair[-1].strip()) for pair in pairs}
    return {}


def has_overwritten_environment(pid: int) -> bool:
    """Whether nothing, or not all, is left of what its program was started with: titles of processes are written over it."""
    text = _read(pid, "environ")
    return bool(text) and ("=" not in text.partition("\0")[0] or "\0\0" in text or not text.endswith("\0"))


def same_pids(pid: int) -> set[int]:
    """The process's numbers: in our PID namespace and in its own."""
    for line in _read(pid, "status").splitlines():
        if line.startswith("NSpid:"):
            return {pid} | {int(word) for word in line.split()[1:] if word.isdigit()}
    return {pid}


def has_library(pid: int) -> Optional[bool]:
    """Whether the shared library is mapped; None if that cannot be known."""
    maps = _read(pid, "maps")
    return LIBRARY in maps if maps else None


def _library_begin(pid: int) -> str:
    """Where the library lies; the same in a process and its forked children, until they start another program."""
    return next((line.partition("-")[0] for line in _read(pid, "maps").splitlines() if LIBRARY in line), "")


def forked_from(pid: int) -> int:
    """The process that forked this one, which has started no program since; 0: none that lives."""
    begin, fields = _library_begin(pid), _stat(pid)
    parent = int(fields[1]) if len(fields) > 1 else 0
    return parent if parent and begin and _library_begin(parent) == begin else 0


def _inodes(pid: int) -> set[str]:
    """Of the sockets it has open. The thread that serves us has descriptors of its own, so all threads are looked at;
    many descriptors under the same numbers as the process's are the same."""
    found, known = set(), None
    for place in (f"/proc/{pid}", *(f"/proc/{pid}/task/{thread}" for thread in _threads(pid))):
        try:
            entries = os.listdir(f"{place}/fd")
        except PermissionError as error:
            raise ViewError(f"no permission to look into {called(pid)}: "
                            f"only {user(owner(pid))} and root may") from error
        except OSError:
            continue  # ended meanwhile
        if known is not None and entries == known and len(entries) > FEW:
            continue
        known = entries if known is None else known
        for entry in entries:
            try:
                target = os.readlink(f"{place}/fd/{entry}")
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                found.add(target[len("socket:["):-1])
    return found


def rooted(pid: int, path: str) -> str:
    """A path from / as the process sees it, below its root."""
    return f"/proc/{pid}/root{path}"


def _outside(pid: int, path: str) -> str:
    """A path of the process as we reach it: it may have another root, or mean its current folder."""
    if path.startswith("@"):
        return path
    if not path.startswith("/"):
        return f"/proc/{pid}/cwd/{path}"
    try:
        theirs, ours = os.stat(f"/proc/{pid}/root"), os.stat("/")
    except OSError:
        return path
    same = (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
    return path if same else rooted(pid, path)


def listening(pid: int) -> list[str]:
    """Addresses of the unix stream sockets it listens at, those that look like ours first."""
    inodes = _inodes(pid)
    found = []
    for line in _read(pid, "net/unix").splitlines()[1:]:
        words = line.split(maxsplit=7)  # number, references, protocol, flags, type, state, inode, path
        if len(words) < 8 or words[6] not in inodes:
            continue
        try:
            listens = int(words[3], 16) & ACCEPTS and int(words[4], 16) == STREAM
        except ValueError:
            continue
        if listens:
            found.append(_outside(pid, words[7]))
    return sorted(set(found), key=lambda address: ("hakmem" not in address, address))
