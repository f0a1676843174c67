# SPDX-License-Identifier: MIT
"""Memory for the row that comes, there beforehand.

In a virtual machine the first touch of a page that the guest has but its host has not takes several times as long as
other faults: it is the host's time, and falls to whichever arm comes first. So before the arms of a round that use
much memory, the lab itself touches as much and returns it: the kernel gives those pages to the arms.
"""
from __future__ import annotations

import mmap
import re
from pathlib import Path

LEAST_KIB = 64 << 10  # rows that use less are not worth it
MOST_KIB = 1 << 20  # keeps it below half a second
PAGE = 4096
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since Linux 5.14


def available_kib(text: str = "") -> int:
    text = text or Path("/proc/meminfo").read_text(encoding="ascii")
    found = re.search(r"^MemAvailable:\s*(\d+)", text, re.M)
    return int(found.group(1)) if found else 0


def amount_kib(peak_kib: float, available: int) -> int:
    """How much to touch for a row whose highest peak is that; never more than half of what is available."""
    return int(min(peak_kib, MOST_KIB, available // 2)) if peak_kib >= LEAST_KIB else 0


def touch(kib: int) -> None:
    """Makes so much memory resident and returns it. Where there is not so much, none is needed either."""
    try:
        with mmap.mmap(-1, kib * 1024, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pool:
            try:
                pool.madvise(POPULATE_WRITE)
            except OSError:  # an older kernel
                pool[::PAGE] = bytes(len(range(0, len(pool), PAGE)))
    except OSError:
        pass


def warm(peak_kib: float) -> None:
    amount = amount_kib(peak_kib, available_kib())
    if amount:
        touch(amount)
