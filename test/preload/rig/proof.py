# SPDX-License-Identifier: MIT
"""The proof that the preload was in effect.

The library is copied to a path of its own for each matrix entry. Every process that the dynamic
loader gives it to opens that file, so an inotify watch on it counts the processes (a lower bound:
the kernel may merge equal events in a row). Long-lived processes are asked directly: their maps
name the file. A static or set-uid program, or one whose environment was dropped on the way, shows
up as a step without a load.
"""

import ctypes
import os
import struct
from pathlib import Path

IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x10, 0x20
EVENT = struct.Struct("iIII")


class LoadWatch:
    """Counts how often a file is opened."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        # ACCESS and CLOSE stand between two OPENs and keep the kernel from merging them.
        mask = IN_OPEN | IN_ACCESS | IN_CLOSE_NOWRITE
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(path), mask) < 0:
            raise OSError(ctypes.get_errno(), f"inotify: {os.strerror(ctypes.get_errno())}")

    def take(self):
        """Opens since the last call."""
        opens = 0
        while True:
            try:
                events = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return opens
            place = 0
            while place < len(events):
                _, mask, _, name_bytes = EVENT.unpack_from(events, place)
                opens += bool(mask & IN_OPEN)
                place += EVENT.size + name_bytes

    def close(self):
        os.close(self.fd)


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
