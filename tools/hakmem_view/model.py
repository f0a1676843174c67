# SPDX-License-Identifier: MIT
"""The documents as plain data. What a library leaves out is 0 or empty; what has the wrong type is an error."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Optional, TypeVar

from .errors import ViewError
from .installed import NAME, own_version
from .process import plain

T = TypeVar("T")
SCHEMA = 1  # version of the documents that are read here
NEWER = f"use the {NAME} that belongs to that library"
HISTOGRAM = 10  # steps of occupancy


def parse(body: bytes, where: str) -> dict:
    """The JSON of a document whose schema we read; `where` begins the message if it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        short = re.sub(r"\s+", " ", str(error))[:80]
        raise ViewError(f"{where} is not JSON: {plain(short)}") from error
    if not isinstance(document, dict) or "schema" not in document:
        raise ViewError(f"{where} is no document of hakmem: it states no schema")
    if document["schema"] != SCHEMA:
        theirs = plain(str(document.get("hakmem", "of an unknown version")))[:40]
        raise ViewError(f"{where} has schema {plain(str(document['schema']))[:20]} (hakmem {theirs}), "
                        f"this tool reads schema {SCHEMA} (hakmem {own_version()}); {NEWER}")
    return document


class Malformed(Exception):
    """Says which field."""


def number_of(value: Any, key: str) -> int:
    if isinstance(value, (int, float)) and abs(value) < 1 << 64:  # neither is infinite or no number
        return int(value)
    raise Malformed(f"{key} is no number")


def int_of(table: dict, key: str) -> int:
    return number_of(table[key], key) if table.get(key) is not None else 0


def text_of(table: dict, key: str) -> str:
    value = table.get(key)
    return "" if value is None else plain(" ".join(str(value).split()))


def numbers_of(table: dict, key: str) -> dict[str, int]:
    found = table.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Malformed(f"{key} is no object")
    return {name: number_of(value, name) for name, value in found.items() if not isinstance(value, (dict, list, str))
            and value is not None}


def list_of(table: dict, key: str, make: Callable[[dict], T]) -> list[T]:
    found = table.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise Malformed(f"{key} is no list of objects")
    return [make(one) for one in found]


def texts_of(table: dict, key: str) -> list[str]:
    found = table.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise Malformed(f"{key} is no list")
    return [plain(" ".join(str(one).split())) for one in found]


def read(make: Callable[[dict], T], document: dict, where: str) -> T:
    """Makes one of the nouns below of a document."""
    try:
        return make(document)
    except Malformed as error:
        raise ViewError(f"{where} is malformed: {error}") from error


@dataclass
class ClassRow:
    bytes: int  # of a block
    slabs: int
    blocks: int  # carved
    live: int
    cached: int  # in caches of threads, between threads, or held back
    free: int

    @classmethod
    def of(cls, table: dict) -> ClassRow:
        found = cls(*(int_of(table, key) for key in ("bytes", "slabs", "blocks", "live", "cached", "free")))
        found.cached += sum(int_of(table, key) for key in ("remote", "quarantine", "lost"))
        return found


@dataclass
class ThreadRow:
    id: int
    cached_bytes: int
    drawn_bytes: int = 0
    idle_ms: int = 0
    is_attached: bool = True
    events: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: dict) -> ThreadRow:
        return cls(int_of(table, "id"), int_of(table, "cached_bytes"), int_of(table, "drawn_bytes"),
                   int_of(table, "idle_ms"), bool(table.get("attached", True)),
                   numbers_of(table, "events"))


@dataclass
class Stats:
    version: str
    pid: int
    bytes: dict[str, int]
    counts: dict[str, int]
    limits: dict[str, int]
    events: dict[str, int]
    classes: list[ClassRow]
    threads: list[ThreadRow]

    @classmethod
    def of(cls, table: dict) -> Stats:
        return cls(text_of(table, "hakmem"), int_of(table, "pid"), numbers_of(table, "bytes"), numbers_of(table, "counts"),
                   numbers_of(table, "limits"), numbers_of(table, "events"), list_of(table, "classes", ClassRow.of),
                   list_of(table, "threads", ThreadRow.of))

    def held(self, *keys: str) -> int:
        return sum(max(0, self.bytes.get(key, 0)) for key in keys)

    def rows(self) -> list[tuple[str, ClassRow]]:
        """Classes, and what is larger as if it were one block, by name; what the program holds most of first."""
        above = [(name, ClassRow(self.bytes[name], self.counts.get(name, 0), 1, 1, 0, 0)) for name in ("large", "huge")
                 if self.bytes.get(name, 0) > 0]
        found = [*((f"{row.bytes} B", row) for row in self.classes if row.live + row.cached + row.free > 0), *above]
        return sorted(found, key=lambda one: (-one[1].live * one[1].bytes, -(one[1].cached + one[1].free) * one[1].bytes))


@dataclass
class Cause:
    name: str
    bytes: int
    title: str
    advice: str

    @classmethod
    def of(cls, table: dict) -> Cause:
        name = text_of(table, "name") or "?"
        return cls(name, int_of(table, "bytes"), text_of(table, "title") or name.replace("_", " "),
                   text_of(table, "advice"))


@dataclass
class Strategy:
    """A keep time and its price, a second."""

    keep_ms: int
    taken_bytes: int
    held_bytes: int

    @classmethod
    def of(cls, table: dict) -> Strategy:
        found = cls(int_of(table, "keep_ms"), int_of(table, "taken_bytes"), int_of(table, "held_bytes"))
        if found.keep_ms <= 0 or found.taken_bytes < 0 or found.held_bytes < 0:
            raise Malformed(f"a keep time of {found.keep_ms} ms costs {found.taken_bytes} and {found.held_bytes}")
        return found

    @property
    def price(self) -> int:
        return self.taken_bytes + self.held_bytes


@dataclass
class Learner:
    """What the learner knows of a pool (docs/learning.md)."""

    pool: str
    learn: str  # the option: 0, 1, counterfactual
    keep_ms: int
    cheapest_ms: int
    standard_ms: int  # without the learner
    since_ms: int
    is_locked: bool
    acts: bool  # else the standard decides
    strategies: list[Strategy]  # the shortest keep time first

    @classmethod
    def of(cls, table: dict) -> Learner:
        found = cls(text_of(table, "pool") or "?", text_of(table, "learn") or "0", int_of(table, "keep_ms"),
                    int_of(table, "cheapest_ms"), int_of(table, "standard_ms"), max(0, int_of(table, "since_ms")),
                    bool(table.get("locked")), bool(table.get("acts", table.get("learn") == "1")),
                    sorted(list_of(table, "strategies", Strategy.of), key=lambda one: one.keep_ms))
        known = {one.keep_ms for one in found.strategies}
        if found.is_on and not {found.keep_ms, found.cheapest_ms} <= known:
            raise Malformed(f"keep_ms or cheapest_ms of {found.pool} is none of its strategies")
        return found

    @property
    def is_on(self) -> bool:
        return self.learn != "0"

    @property
    def is_counterfactual(self) -> bool:
        return self.learn == "counterfactual"


@dataclass
class Explain:
    version: str
    pid: int
    rss_bytes: int
    sum_bytes: int
    first: str
    text: str
    causes: list[Cause]
    threads: list[ThreadRow]
    notes: list[str]  # what could not be found out
    learners: list[Learner] = field(default_factory=list)  # of older libraries none

    @classmethod
    def of(cls, table: dict) -> Explain:
        causes = sorted(list_of(table, "causes", Cause.of), key=lambda cause: -cause.bytes)
        total = sum(cause.bytes for cause in causes)
        return cls(text_of(table, "hakmem"), int_of(table, "pid"), int_of(table, "rss_bytes"),
                   int_of(table, "sum_bytes") or total, text_of(table, "first") or (causes[0].name if causes else ""),
                   text_of(table, "text"), causes, list_of(table, "threads", ThreadRow.of), texts_of(table, "notes"),
                   list_of(table, "learner", Learner.of))


@dataclass
class Span:
    unit: int
    units: int
    kind: str  # slab, large, clean, dirty, or what a later library may name
    bytes: int = 0  # of a block
    live: int = 0
    blocks: int = 0  # carved
    capacity: int = 0

    @classmethod
    def of(cls, table: dict) -> Span:
        return cls(int_of(table, "unit"), max(1, int_of(table, "units")), text_of(table, "kind") or "?",
                   *(int_of(table, key) for key in ("bytes", "live", "blocks", "capacity")))

    @property
    def is_slab(self) -> bool:
        return self.kind == "slab"

    @property
    def occupancy(self) -> float:
        most = max(self.capacity, self.blocks)
        return min(1.0, max(0.0, self.live / most)) if most > 0 else 0.0

    @property
    def carved(self) -> float:
        return min(1.0, max(0.0, self.blocks / self.capacity)) if self.capacity > 0 else self.occupancy


@dataclass
class Superslab:
    base: str
    huge_pages: int
    spans: list[Span]

    @classmethod
    def of(cls, table: dict) -> Superslab:
        return cls(text_of(table, "base"), int_of(table, "huge_pages"), list_of(table, "spans", Span.of))

    @cached_property
    def slabs(self) -> list[Span]:
        return [span for span in self.spans if span.is_slab]

    @cached_property
    def free_bytes(self) -> int:
        """Room within its slabs."""
        return sum(max(0, span.capacity - span.live) * span.bytes for span in self.slabs)

    def like(self, other: Superslab) -> bool:
        """Whether it looks the same."""
        return (self.spans, self.huge_pages) == (other.spans, other.huge_pages)

    def units(self, *kinds: str) -> int:
        return sum(span.units for span in self.spans if span.kind in kinds)


@dataclass
class Huge:
    base: str
    bytes: int
    kind: str

    @classmethod
    def of(cls, table: dict) -> Huge:
        return cls(text_of(table, "base"), int_of(table, "bytes"), text_of(table, "kind") or "huge")


@dataclass
class ClassTally:
    """All slabs of a class."""

    bytes: int
    slabs: int = 0
    units: int = 0
    live: int = 0
    blocks: int = 0
    capacity: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * HISTOGRAM)  # slabs by occupancy, emptiest first

    @property
    def occupancy(self) -> float:
        return self.live / self.capacity if self.capacity else 0.0


@dataclass
class Map:
    version: str
    pid: int
    unit_bytes: int
    units: int  # of a superslab
    superslabs: list[Superslab]
    huge: list[Huge]
    rss_bytes: Optional[int] = None  # known to who made the document, if at all

    @classmethod
    def of(cls, table: dict) -> Map:
        units = int_of(table, "superslab_units") or 64
        if not 1 <= units <= 1024:
            raise Malformed(f"superslab_units is {units}")
        found = cls(text_of(table, "hakmem"), int_of(table, "pid"), int_of(table, "unit_bytes") or 65536, units,
                    list_of(table, "superslabs", Superslab.of), list_of(table, "huge", Huge.of))
        for superslab in found.superslabs:
            if any(span.unit < 0 or span.unit + span.units > units for span in superslab.spans):
                raise Malformed(f"a span of superslab {superslab.base} lies outside of it")
        return found

    @cached_property
    def classes(self) -> list[ClassTally]:
        """By block size, smallest first."""
        found: dict[int, ClassTally] = {}
        for superslab in self.superslabs:
            for span in superslab.slabs:
                one = found.setdefault(span.bytes, ClassTally(span.bytes))
                one.slabs += 1
                one.units += span.units
                one.live += span.live
                one.blocks += span.blocks
                one.capacity += span.capacity
                one.histogram[min(HISTOGRAM - 1, int(span.occupancy * HISTOGRAM))] += 1
        return [found[key] for key in sorted(found)]
