# SPDX-License-Identifier: MIT
"""What only a living process tells of its blocks: the free memory that they keep resident. It is looked at now and then while the
user's program runs, for the profile that is left if a signal ends it."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from . import observer, process
from .errors import Closed, Refused, ViewError

PAUSE = 0.5  # seconds between two looks, at least
SHARE = 50  # times as long as a look took is the pause after it
LONGEST = 2.0  # seconds of a look
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)  # to the program, by the main thread


@dataclass
class Look:
    """At one process."""

    head: bytes  # of the file in which it keeps its profile: another program of the same PID has another one
    time: float  # of the clock that only goes on
    pinned: dict[tuple, int]  # bytes by site, where there are any
    ended: float = 0.0  # when it was first seen to have gone


def _key(site: dict) -> tuple:
    return (site["label"], *site["stack"])


def _keeps(path: Path) -> int:
    """The PID of the process that keeps its profile in this file, which has that as name; 0: there is none. It could be one of another
    PID namespace, or be about to end."""
    pid = int(path.name) if path.name.isdigit() else 0
    return pid if pid and process.maps_file(pid, path) else 0


def look(path: Path) -> Optional[Look]:
    """At the process that keeps its profile in this file. None: there is none, or it ended meanwhile."""
    head, pid, begin = observer.kept_head(path), _keeps(path), time.monotonic()
    if not head or not pid:
        return None
    try:
        body = observer.Observed(path.name, pid).read("profile", "--format", "json", seconds=LONGEST)
    except Closed:
        return None
    pinned = {_key(site): site["pinned_bytes"] for site in json.loads(body)["sites"] if site["pinned_bytes"]}
    return Look(head, begin, pinned) if _keeps(path) and observer.kept_head(path) == head else None


@dataclass
class Looks:
    """At all processes with a file in a folder, from a thread of its own, between `with` and its end."""

    folder: Path
    last: dict[str, Look] = field(default_factory=dict)  # by name of the file
    refused: dict[str, bytes] = field(default_factory=dict)  # heads of the files of processes that may not be read

    def __post_init__(self) -> None:
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Looks:
        with contextlib.suppress(RuntimeError):  # no thread can be made
            self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        now = time.monotonic()
        self.end.set()
        if self.thread.ident is not None:
            self.thread.join()
        for one in self.last.values():
            one.ended = one.ended or now

    def _go_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
        pause = PAUSE
        while not self.end.wait(pause):
            begin = time.monotonic()
            with contextlib.suppress(OSError, RuntimeError):
                self.round()
            pause = max(PAUSE, SHARE * (time.monotonic() - begin))

    def round(self) -> None:
        """Looks at each of them once."""
        for name in sorted(os.listdir(self.folder)):
            path, found = self.folder / name, None
            head = observer.kept_head(path)
            if self.end.is_set():
                return
            if not head:  # its report has taken that place
                self.last.pop(name, None)
                continue
            try:
                found = look(path) if self.refused.get(name) != head else None
            except Refused:
                self.refused[name] = head
            except (ViewError, ValueError, KeyError, TypeError):
                pass  # the next time
            if found is not None:
                self.last[name] = found
            elif name in self.last and not _keeps(path):
                self.last[name].ended = self.last[name].ended or time.monotonic()

    def complete(self, name: str, body: bytes) -> bytes:
        """The profile of a process that was killed, with what the last look at it saw."""
        seen = self.last.get(name)
        if seen is None or seen.head != observer.kept_head(self.folder / name):
            return body
        document = json.loads(body)
        for site in document["sites"]:
            site["pinned_bytes"] = seen.pinned.get(_key(site), 0)
        document["pinned_age_ns"] = max(0, round(1e9 * (seen.ended - seen.time)))
        return json.dumps(document, separators=(",", ":")).encode()
