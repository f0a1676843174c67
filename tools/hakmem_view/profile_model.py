# SPDX-License-Identifier: MIT
"""A heap profile as data: what hakmem-observe and `report:profile` write. By the standard library alone."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Callable, Optional

from .errors import ViewError
from .model import Malformed, int_of, list_of, number_of, read, text_of
from .symbols import Frame

VERSION = 1  # of the document
LIKELY = 1.96  # standard errors: 95 % of all estimates are that near to the truth
DEEPEST = 1024  # frames of a stack
MOST_SITES = 1_000_000


def real_of(table: dict, key: str) -> float:
    value = table.get(key)
    if value is None:
        return 0.0
    number_of(value, key)
    return float(value)


def _table_of(table: dict, key: str) -> dict:
    found = table.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Malformed(f"{key} is no object")
    return found


def address_of(value: Any, key: str) -> int:
    """Written in hexadecimal: JSON's numbers are too small for it."""
    try:
        found = int(value, 16) if isinstance(value, str) and len(value) <= 18 else -1
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 64:
        raise Malformed(f"{key} has something that is no address")
    return found


@dataclass
class Value:
    """Estimates of the blocks of a site, by its samples."""

    samples: int = 0
    objects: float = 0.0
    bytes: float = 0.0
    raw_bytes: float = 0.0  # of the samples themselves

    @classmethod
    def of(cls, table: dict) -> Value:
        return cls(int_of(table, "samples"), *(max(0.0, real_of(table, key)) for key in ("objects", "bytes", "raw_bytes")))

    @property
    def variance(self) -> float:
        """Of bytes, if all samples were alike: a sample of S bytes with the weight w adds w·(w−1)·S²."""
        return self.bytes * max(0.0, self.bytes - self.raw_bytes) / self.samples if self.samples > 0 else 0.0

    @property
    def error(self) -> float:
        return LIKELY * math.sqrt(self.variance)


@dataclass
class Lifetimes:
    """Of sampled blocks that were freed, in ns; the blocks that still live are counted apart: they are censored."""

    freed: int = 0
    censored: int = 0
    p10: int = 0
    p50: int = 0
    p90: int = 0
    p99: int = 0
    oldest: int = 0  # age of the oldest that lives
    temporary: int = 0  # freed before their thread had asked for another 4 KiB

    @classmethod
    def of(cls, table: dict) -> Lifetimes:
        return cls(*(max(0, int_of(table, key)) for key in ("freed", "censored", "p10", "p50", "p90", "p99", "oldest_ns", "temporary")))

    def bound(self, most: int) -> None:
        """No block lived longer than sampling went on."""
        self.p10, self.p50, self.p90, self.p99 = (min(most, one) for one in (self.p10, self.p50, self.p90, self.p99))


@dataclass
class Size:
    """Blocks in use of `begin` bytes, a power of two, to less than twice that."""

    begin: int
    samples: int
    objects: float
    bytes: float

    @classmethod
    def of(cls, table: dict) -> Size:
        begin = int_of(table, "from")
        if begin < 1 or begin & (begin - 1) or begin >= 1 << 64:
            raise Malformed("from is no power of two")
        return cls(begin, max(0, int_of(table, "samples")), *(max(0.0, real_of(table, key)) for key in ("objects", "bytes")))


@dataclass
class Site:
    """One stack that allocates."""

    stack: tuple[int, ...]  # return addresses, innermost first
    label: str
    inuse: Value
    alloc: Value
    peak: Value
    requested: float = 0.0
    pinned: float = 0.0
    variance: float = 0.0  # of inuse.bytes
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    threads: list[tuple[int, float]] = field(default_factory=list)  # thread ID, bytes in use
    sizes: list[Size] = field(default_factory=list)  # of blocks in use; none of an older version

    @classmethod
    def of(cls, table: dict) -> Site:
        stack = table.get("stack")
        if not isinstance(stack, list):
            raise Malformed("stack is no list")
        inuse = Value.of(_table_of(table, "inuse"))
        threads = list_of(table, "threads", lambda one: (int_of(one, "tid"), max(0.0, real_of(one, "bytes"))))
        return cls(tuple(address_of(one, "stack") for one in stack[:DEEPEST]), text_of(table, "label")[:200], inuse,
                   Value.of(_table_of(table, "alloc")), Value.of(_table_of(table, "peak")),
                   max(0.0, real_of(table, "requested_bytes")), max(0.0, real_of(table, "pinned_bytes")),
                   max(0.0, real_of(table, "variance")) or inuse.variance, Lifetimes.of(_table_of(table, "lifetimes_ns")),
                   sorted(threads, key=lambda one: -one[1]), list_of(table, "sizes", Size.of)[:64])

    @property
    def error(self) -> float:
        """Of the bytes in use."""
        return LIKELY * math.sqrt(self.variance)

    @property
    def slack(self) -> float:
        """Usable bytes beyond what was asked for."""
        return max(0.0, self.inuse.bytes - self.requested) if self.requested else 0.0

    @property
    def kept(self) -> float:
        """The part of all that was allocated here that still lives."""
        return min(1.0, self.inuse.bytes / self.alloc.bytes) if self.alloc.bytes > 0 else 1.0


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    offset: int
    path: str
    build_id: str

    @classmethod
    def of(cls, table: dict) -> Mapping:
        start, end, offset = (address_of(table.get(key), key) for key in ("start", "end", "offset"))
        if end < start:
            raise Malformed("a mapping ends before it begins")
        build = text_of(table, "build_id").lower()
        return cls(start, end, offset, text_of(table, "path"),
                   build if len(build) <= 128 and all(letter in "0123456789abcdef" for letter in build) else "")

    @property
    def name(self) -> str:
        return PurePosixPath(self.path.removesuffix(" (deleted)")).name if self.path else ""


def _code_of(table: dict) -> tuple[int, Frame]:
    return address_of(table.get("address"), "address"), Frame(
        text_of(table, "function"), text_of(table, "file"), max(0, int_of(table, "line")), False, bool(table.get("is_python")))


def code_to(code: dict[int, Frame]) -> list[dict]:
    """The same as a document has it."""
    return [{"address": f"{address:#x}", "function": one.function, "file": one.file, "line": one.line, "is_python": one.is_python}
            for address, one in sorted(code.items())]


@dataclass
class Profile:
    version: str
    pid: int
    program: str
    time: float  # seconds since 1970
    started: float
    is_on: bool
    rate: int
    exact_bytes: Optional[int]
    estimate: float
    sigma: float
    samples: dict[str, int]
    peak_time: float
    peak_bytes: float
    mappings: list[Mapping]
    sites: list[Site]
    is_whole: bool = True  # sampling has been on since the process started
    code: dict[int, Frame] = field(default_factory=dict)  # functions that were made at run time, by address
    threads: dict[int, str] = field(default_factory=dict)  # their names
    rss: Optional[int] = None  # of the process when it was read, if that is known
    pinned_age: Optional[float] = None  # seconds from the look that saw what is pinned to the end of a process that was killed

    @classmethod
    def of(cls, table: dict) -> Profile:
        exact, estimate, peak = (_table_of(table, key) for key in ("exact", "estimate", "peak"))
        samples = {key: max(0, int_of(_table_of(table, "samples"), key))
                   for key in ("live", "taken", "dropped", "sites", "sites_dropped", "own_bytes")}
        if isinstance(table.get("sites"), list) and len(table["sites"]) > MOST_SITES:
            raise Malformed(f"there are more than {MOST_SITES} sites")
        found = cls(text_of(table, "version"), int_of(table, "pid"), text_of(table, "program")[:200],
                    real_of(table, "time_ns") / 1e9, real_of(table, "started_ns") / 1e9, bool(table.get("is_on")),
                    max(0, int_of(table, "rate")), int_of(exact, "live_bytes") if exact.get("live_bytes") is not None else None,
                    real_of(estimate, "live_bytes"), max(0.0, real_of(estimate, "sigma_bytes")), samples,
                    real_of(peak, "time_ns") / 1e9, real_of(peak, "live_bytes"),
                    sorted(list_of(table, "mappings", Mapping.of), key=lambda one: one.start),
                    list_of(table, "sites", Site.of), bool(table.get("is_whole", True)),
                    dict(list_of(table, "code", _code_of)),
                    dict(list_of(table, "threads", lambda one: (int_of(one, "tid"), text_of(one, "name")[:16]))),
                    int_of(table, "rss_bytes") or None,
                    max(0.0, real_of(table, "pinned_age_ns") / 1e9) if "pinned_age_ns" in table else None)
        found.estimate = found.estimate or sum(site.inuse.bytes for site in found.sites)
        found.sigma = found.sigma or math.sqrt(sum(site.variance for site in found.sites))
        if found.started:  # percentiles are middles of ranges
            for site in found.sites:
                site.lifetimes.bound(round(found.seconds * 1e9))
        return found

    @property
    def seconds(self) -> float:
        """That it sampled for."""
        return max(0.0, self.time - self.started)

    @property
    def knows_pinned(self) -> bool:
        """Not of a program that was killed before anybody had looked at it."""
        return self.exact_bytes is not None or self.pinned_age is not None

    @property
    def error(self) -> float:
        return LIKELY * self.sigma

    @cached_property
    def addresses(self) -> set[int]:
        return {address for site in self.sites for address in site.stack}

    def mapping(self, address: int) -> Optional[Mapping]:
        """The file that a return address points to; it may be the first byte behind the mapping. None: code made at run time."""
        low, high = 0, len(self.mappings)
        while low < high:
            middle = (low + high) // 2
            if self.mappings[middle].start < address:
                low = middle + 1
            else:
                high = middle
        found = self.mappings[low - 1] if low else None
        return found if found is not None and found.path and address <= found.end else None

    def place(self, address: int) -> tuple[str, int]:
        """The same in every process that runs the same program, wherever it was loaded."""
        made = self.code.get(address)
        if made is not None:
            return (f"{made.function}:{made.file}", 0)
        found = self.mapping(address)
        return (found.build_id or found.path, address - found.start + found.offset) if found else ("", address)

    def key(self, site: Site) -> tuple:
        return (site.label, *(self.place(address) for address in site.stack))


@dataclass
class Kind:
    """What the bytes of a site may be asked for."""

    name: str
    title: str
    of: Callable[[Site], float]
    unit: str = "bytes"


KINDS = {kind.name: kind for kind in (
    Kind("inuse", "in use", lambda site: site.inuse.bytes),
    Kind("alloc", "allocated", lambda site: site.alloc.bytes),
    Kind("peak", "at the peak", lambda site: site.peak.bytes),
    Kind("pinned", "pinned", lambda site: site.pinned),
    Kind("slack", "slack", lambda site: site.slack),
    Kind("objects", "objects in use", lambda site: site.inuse.objects, "count"))}


def profile(document: dict, where: str) -> Profile:
    """Checks the version; `where` begins the message if it is none of ours."""
    if "profile" not in document:
        raise ViewError(f"{where} is no profile of hakmem")
    if document["profile"] != VERSION:
        raise ViewError(f"{where} is a profile of version {text_of(document, 'profile')[:20]}, this tool reads {VERSION}")
    return read(Profile.of, document, where)


@dataclass
class Growth:
    """A site in two profiles."""

    site: Site  # as it is now; of a site that is gone all is 0
    bytes: float
    objects: float
    error: float
    allocated: float  # meanwhile

    @property
    def is_certain(self) -> bool:
        return abs(self.bytes) > self.error


def _without(site: Site) -> Site:
    return Site(site.stack, site.label, Value(), Value(), Value())


def difference(old: Profile, new: Profile) -> list[Growth]:
    """What has grown, most first; the error is that of two estimates that know nothing of each other."""
    before: dict[tuple, Site] = {old.key(site): site for site in old.sites}
    found = []
    for site in new.sites:
        was = before.pop(new.key(site), None) or _without(site)
        found.append(Growth(site, site.inuse.bytes - was.inuse.bytes, site.inuse.objects - was.inuse.objects,
                            math.hypot(site.error, was.error), max(0.0, site.alloc.bytes - was.alloc.bytes)))
    shift = {one.path: one for one in new.mappings}
    made = {new.place(address): address for address in new.code}
    for was in before.values():
        gone = _without(was)
        gone.stack = tuple(made.get(old.place(address)) or _moved(address, old, shift) for address in was.stack)
        found.append(Growth(gone, -was.inuse.bytes, -was.inuse.objects, was.error, 0.0))
    return sorted(found, key=lambda one: -one.bytes)


def _moved(address: int, old: Profile, shift: dict[str, Mapping]) -> int:
    """An address of the old process in the new one, if the same file is mapped there."""
    was = old.mapping(address)
    now = shift.get(was.path) if was and was.path else None
    return address - was.start + was.offset + now.start - now.offset if was and now else address
