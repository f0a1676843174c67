# SPDX-License-Identifier: MIT
"""The proof that the preload was in effect.

The library is copied to a path of its own for each matrix entry. Every process that the dynamic
loader gives it to opens that file, so watches on it count the processes (lower bounds: the kernel may
merge equal events). Long-lived processes are asked directly: their maps name the file. A static or set-uid program, or one whose environment was dropped on the way, shows
up as a step without a load.
"""

import ctypes
import os
import struct
from pathlib import Path

IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x10, 0x20
EVENT = struct.Struct("iIII")
FAN_NONBLOCK, FAN_CLOEXEC, FAN_MARK_ADD, FAN_OPEN = 0x2, 0x1, 0x1, 0x20
FAN_EVENT = struct.Struct("=IBBHQii")
HERE = -100  # AT_FDCWD


def check(result, call):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")
    return result


def waiting(fd):
    """The events that wait in a queue."""
    events = b""
    while True:
        try:
            events += os.read(fd, 1 << 16)
        except BlockingIOError:
            return events


class FanotifyCount:
    """Opens with the process that made each: only those of one process in a row may be merged. Needs root."""

    def __init__(self, libc, path):
        self.fd = check(libc.fanotify_init(FAN_NONBLOCK | FAN_CLOEXEC, os.O_RDONLY | os.O_CLOEXEC), "fanotify")
        try:
            check(libc.fanotify_mark(self.fd, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN), HERE, os.fsencode(path)),
                  "fanotify")
        except OSError:
            os.close(self.fd)
            raise

    def take(self):
        events, place, opens = waiting(self.fd), 0, 0
        while place < len(events):
            length, _, _, _, _, file, _ = FAN_EVENT.unpack_from(events, place)
            if file >= 0:
                os.close(file)
            opens += 1
            place += length
        return opens


class InotifyCount:
    """Opens by anyone: those of two processes at the same moment may be merged."""

    def __init__(self, libc, path):
        self.fd = check(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        # ACCESS and CLOSE stand between two OPENs and keep the kernel from merging them.
        mask = IN_OPEN | IN_ACCESS | IN_CLOSE_NOWRITE
        check(libc.inotify_add_watch(self.fd, os.fsencode(path), mask), "inotify")

    def take(self):
        events, place, opens = waiting(self.fd), 0, 0
        while place < len(events):
            _, mask, _, name_bytes = EVENT.unpack_from(events, place)
            opens += bool(mask & IN_OPEN)
            place += EVENT.size + name_bytes
        return opens


class LoadWatch:
    """Counts how often a file is opened: the larger of two lower bounds, which lose different things."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.counts = [InotifyCount(libc, path)]
        try:
            self.counts.append(FanotifyCount(libc, path))
        except (OSError, AttributeError):
            pass  # not root, or a kernel or C library without it

    def take(self):
        """Opens since the last call."""
        return max(count.take() for count in self.counts)

    def close(self):
        for count in self.counts:
            os.close(count.fd)


def processes():
    """pid → parent pid of every process."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = place.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        parents[int(place.parent.name)] = int(after_name[1])
    return parents


def family(pid):
    """A process and all its descendants, ancestors first."""
    parents = processes()
    members = [pid]
    for member in members:
        members += [child for child, parent in parents.items() if parent == member]
    return members


def maps_library(pid, library):
    """True or False; None if the process has no memory (any more)."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return None
    return str(library) in maps if maps else None
