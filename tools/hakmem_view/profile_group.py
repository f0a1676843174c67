# SPDX-License-Identifier: MIT
"""Sites summed as people think: by function, or by line, each with what it calls; and where a row's callers have room."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable, Optional

from .profile_model import Growth, Lifetimes, Site, Value
from .profile_names import Frame, Named, at_line, short

BY = {"function": "Functions", "line": "Lines", "stack": "Sites"}
CALLERS = 8  # of a row, at most; as many of them are shown as fit
LONG = 36  # letters of a caller's name, above which outer scopes are left out
EMPTY = Site((), "", Value(), Value(), Value())


@dataclass
class Row:
    """A site or a sum of sites, of all threads or of one."""

    site: Site
    value: float  # what it is ordered by
    growth: Optional[Growth] = None
    allocated: float = 0.0  # of the time that rates are of
    thread: str = ""
    inclusive: float = 0.0  # with what it calls
    cells: list[str] = field(default_factory=list)
    where: str = ""
    callers: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)  # that it sums, the largest first

    @property
    def stacks(self) -> int:
        return max(1, len(self.sites))

    def place(self, width: int) -> str:
        """Where, and as many callers as fit whole."""
        more = f"  (+{self.stacks - 1} stacks)" if self.stacks > 2 else "  (+1 stack)" if self.stacks == 2 else ""
        line, rest = self.where, width - len(more)
        for at, name in enumerate(self.callers):
            longer = f"{line}{' <' if at else '  <'} {name}"
            if len(longer) + (0 if at == len(self.callers) - 1 else 4) > rest:
                line += " < …" if at and len(line) + 4 <= rest else ""
                break
            line = longer
        return line + more if len(line) + len(more) <= width else line


Key = tuple


def _key(frame: Frame, label: str, by: str) -> Key:
    """The same for all that is one row. A function without a name is a place of its file, and so its own line."""
    return (label, short(frame.function), frame.file, frame.line if by == "line" else 0)


def brief(name: str) -> str:
    """A caller's name, without outer scopes if it is long."""
    pieces = name.split("::")
    if len(name) <= LONG or len(pieces) < 3:
        return name
    if name.startswith("<") and ">::" in name:  # of Rust: <type as trait>::function
        kind, _, function = name[1:].rpartition(">::")
        return f"{kind.partition(' as ')[0].rpartition('::')[2]}::{function}"
    return "::".join(pieces[-2:])


def _sum(values: list[Value]) -> Value:
    return Value(sum(one.samples for one in values), *(math.fsum(getattr(one, key) for one in values)
                                                       for key in ("objects", "bytes", "raw_bytes")))


def merged(sites: list[Site]) -> Site:
    """Their sums. Variances add up, so the error is that of the sum. Of percentiles there is no sum."""
    if len(sites) == 1:
        return sites[0]
    lives = [one.lifetimes for one in sites]
    threads: dict[int, float] = {}
    for one in sites:
        for thread, amount in one.threads:
            threads[thread] = threads.get(thread, 0.0) + amount
    return Site(sites[0].stack, sites[0].label, _sum([one.inuse for one in sites]), _sum([one.alloc for one in sites]),
                _sum([one.peak for one in sites]), *(math.fsum(getattr(one, key) for one in sites)
                                                     for key in ("requested", "pinned", "variance")),
                Lifetimes(sum(one.freed for one in lives), sum(one.censored for one in lives),
                          oldest=max(one.oldest for one in lives)), sorted(threads.items(), key=lambda one: -one[1]),
                [size for one in sites for size in one.sizes])


def _grown(rows: list[Row], site: Site) -> Optional[Growth]:
    found = [row.growth for row in rows if row.growth]
    if not found:
        return None
    return Growth(site, *(math.fsum(getattr(one, key) for one in found) for key in ("bytes", "objects")),
                  math.sqrt(math.fsum(one.error ** 2 for one in found)), math.fsum(one.allocated for one in found))


def _one(rows: list[Row], frames: list[Frame], named: Named) -> Row:
    """The sum of rows, which allocate at these frames."""
    largest = max(rows, key=lambda row: abs(row.value))
    site = merged([row.site for row in rows])
    places = {frame.line for frame in frames}
    frame = frames[0] if len(places) == 1 else Frame(frames[0].function, frames[0].file, 0, False)
    found = Row(site, math.fsum(row.value for row in rows), _grown(rows, site), math.fsum(row.allocated for row in rows),
                largest.thread, sites=[row.site for row in sorted(rows, key=lambda row: -abs(row.value))])
    found.where = short(frame.function) + at_line(frame) + named.label(largest.site)
    found.callers = [brief(name) for name in named.chain(largest.site, CALLERS)]
    return found


def inclusive(rows: list[Row], named: Named, by: str, amount: Callable[[Row], float]) -> dict[Key, tuple[Frame, float]]:
    """What functions hold with all that they call; one that calls itself counts once."""
    found: dict[Key, tuple[Frame, float]] = {}
    for row in rows:
        seen: set[Key] = set()
        for at, frame in enumerate(named.own(row.site)):
            key = _key(frame, row.site.label if at == 0 else "", by)
            if key not in seen:
                seen.add(key)
                was, sum_ = found.get(key, (frame, 0.0))
                same = was if was.line == frame.line else Frame(was.function, was.file, 0, False)
                found[key] = (same, sum_ + amount(row))
    return found


def grouped(rows: list[Row], named: Named, by: str, amount: Optional[Callable[[Row], float]] = None) -> list[Row]:
    """Rows by function or line instead of by site, the largest first; last those that only call, where `amount` is given."""
    groups: dict[Key, list[Row]] = {}
    frames: dict[Key, list[Frame]] = {}
    for row in rows:
        frame = named.own(row.site)[0]
        key = (row.thread, *_key(frame, row.site.label, by))
        groups.setdefault(key, []).append(row)
        frames.setdefault(key, []).append(frame)
    found = {key: _one(group, frames[key], named) for key, group in groups.items()}
    if amount is not None:
        for key, (frame, whole) in inclusive(rows, named, by, amount).items():
            row = found.setdefault(("", *key), Row(EMPTY, 0.0, where=short(frame.function) + at_line(frame)))
            row.inclusive = whole
    return sorted(found.values(), key=lambda row: (-row.value, -row.inclusive))
