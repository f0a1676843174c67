# SPDX-License-Identifier: MIT
"""What only a living process tells of its blocks: the free memory that they keep resident. It is looked at now and then while the
user's program runs, for the profile that is left if a signal ends it."""
from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from . import observer, process
from .errors import ViewError

PAUSE = 0.5  # seconds between two looks, at least
SHARE = 50  # times as long as a look took is the pause after it
LONGEST = 5.0  # seconds of a look


@dataclass
class Look:
    """At one process."""

    time: float  # of the clock that only goes on
    pinned: dict[tuple, int]  # bytes by site


def _key(site: dict) -> tuple:
    return (site["label"], *site["stack"])


def look(path: Path) -> Optional[Look]:
    """At the process that keeps its profile in this file, which has its PID as name. None: there is none, or it may not be read."""
    pid = int(path.name) if path.name.isdigit() else 0
    if not pid or not observer.is_kept(path) or not process.maps_file(pid, path):  # it could be one of another PID namespace
        return None
    try:
        sites = json.loads(observer.Observed(path.name, pid).read("profile", "--format", "json", seconds=LONGEST))["sites"]
    except (ViewError, ValueError):
        return None
    return Look(time.monotonic(), {_key(site): site["pinned_bytes"] for site in sites})


@dataclass
class Looks:
    """At all processes with a file in a folder, from a thread of its own, between `with` and its end."""

    folder: Path
    last: dict[str, Look] = field(default_factory=dict)  # by name of the file
    ended: float = 0.0

    def __post_init__(self) -> None:
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Looks:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.ended = time.monotonic()
        self.end.set()
        self.thread.join()

    def _go_on(self) -> None:
        pause = PAUSE
        while not self.end.wait(pause):
            begin = time.monotonic()
            for name in sorted(os.listdir(self.folder)):
                found = None if self.end.is_set() else look(self.folder / name)
                if found is not None:
                    self.last[name] = found
            pause = max(PAUSE, SHARE * (time.monotonic() - begin))

    def complete(self, name: str, body: bytes) -> bytes:
        """The profile of a process that was killed, with what the last look at it saw."""
        seen = self.last.get(name)
        if seen is None:
            return body
        document = json.loads(body)
        for site in document["sites"]:
            site["pinned_bytes"] = seen.pinned.get(_key(site), 0)
        document["pinned_age_ns"] = max(0, round(1e9 * (self.ended - seen.time)))
        return json.dumps(document, separators=(",", ":")).encode()
