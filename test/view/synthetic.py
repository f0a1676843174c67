# SPDX-License-Identifier: MIT
"""Profiles whose truth is known: sites of given sizes and numbers of blocks, sampled by Poisson as the library does.

    synthetic.py [PROGRAM [SEED]]      prints one; stacks lie in PROGRAM, if it is given
"""
from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import dataclass, field

RATE = 65536
BEGIN, OFFSET, LENGTH = 0x555500000000, 0x1000, 0x100000
SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND


@dataclass
class Truth:
    """A site: blocks of one size, of which some still live."""

    stack: list[int]  # offsets in the file, innermost first
    size: int
    live: int
    freed: int = 0
    requested: int = 0  # of a block; 0: all of it
    peak: int = 0  # blocks; 0: as many as live
    pinned: int = 0
    label: str = ""
    thread: int = 1

    @property
    def bytes(self) -> int:
        return self.size * self.live


@dataclass
class Load:
    sites: list[Truth]
    path: str = "/usr/bin/program"
    build_id: str = ""
    begin: int = BEGIN
    pid: int = 4711
    seconds: int = 60
    rate: int = RATE
    extra: dict = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(site.bytes for site in self.sites)


def _value(samples: int, size: int, weight: float) -> dict:
    return {"samples": samples, "objects": round(samples * weight), "bytes": round(samples * weight * size),
            "raw_bytes": samples * size}


def _binomial(count: int, part: float, chance: random.Random) -> int:
    """Exactly for few; a normal one for many."""
    if count < 5000:
        return sum(chance.random() < part for _ in range(count))
    return min(count, max(0, round(chance.gauss(count * part, math.sqrt(count * part * (1 - part))))))


def _site(truth: Truth, load: Load, chance: random.Random) -> dict:
    part = 1 - math.exp(-truth.size / load.rate)
    weight = 1 / part
    live, freed = _binomial(truth.live, part, chance), _binomial(truth.freed, part, chance)
    peak = _binomial(truth.peak, part, chance) if truth.peak else live
    inuse = _value(live, truth.size, weight)
    return {"stack": [hex(load.begin + offset - OFFSET) for offset in truth.stack], "label": truth.label, "inuse": inuse,
            "alloc": _value(live + freed, truth.size, weight), "peak": _value(peak, truth.size, weight),
            "requested_bytes": round(inuse["bytes"] * (truth.requested or truth.size) / truth.size),
            "pinned_bytes": truth.pinned if live else 0, "variance": round(live * weight * (weight - 1) * truth.size ** 2),
            "lifetimes_ns": {"freed": freed, "p10": 1000, "p50": 2_000_000, "p90": SECOND, "p99": 3 * SECOND, "censored": live,
                             "oldest_ns": load.seconds * SECOND if live else 0, "temporary": freed // 4},
            "threads": [{"tid": load.pid + truth.thread, "bytes": inuse["bytes"]}] if live else [],
            "sizes": [{"from": 1 << truth.size.bit_length() - 1, **{key: inuse[key] for key in ("samples", "objects", "bytes")}}] if live else []}


def document(load: Load, seed: int = 1) -> dict:
    """What GET /profile would answer."""
    chance = random.Random(seed)
    sites = [_site(truth, load, chance) for truth in load.sites]
    found = sum(site["inuse"]["bytes"] for site in sites)
    return {"profile": 1, "version": "0.1.0", "pid": load.pid, "program": load.path.rpartition("/")[2], "time_ns": NOW,
            "started_ns": NOW - load.seconds * SECOND, "is_on": True, "is_whole": True, "rate": load.rate,
            "exact": {"live_bytes": load.bytes, "live_objects": None},
            "estimate": {"live_bytes": found, "sigma_bytes": round(math.sqrt(sum(site["variance"] for site in sites)))},
            "samples": {"live": sum(site["inuse"]["samples"] for site in sites),
                        "taken": sum(site["alloc"]["samples"] for site in sites), "dropped": 0, "sites": len(sites),
                        "sites_dropped": 0, "own_bytes": 81920},
            "peak": {"time_ns": NOW - SECOND, "live_bytes": sum(site["peak"]["bytes"] for site in sites)},
            "mappings": [{"start": hex(load.begin), "end": hex(load.begin + LENGTH), "offset": hex(OFFSET), "path": load.path,
                          "build_id": load.build_id}], "sites": sites, **load.extra}


def standard(**more) -> Load:
    """A load with something of everything; offsets are those of a made-up program."""
    return Load([Truth([0x1100, 0x2100, 0x3100], 4096, 20_000, requested=3000, pinned=9 << 20),
                 Truth([0x1200, 0x2100, 0x3100], 64, 100_000, freed=900_000),
                 Truth([0x1300, 0x2200, 0x3100], 1 << 20, 3, freed=40, peak=30, thread=2),
                 Truth([0x1400, 0x3100], 256, 40_000, label="cache")], **more)


if __name__ == "__main__":
    print(json.dumps(document(standard(**({"path": sys.argv[1]} if sys.argv[1:] else {})), int((sys.argv + [0, 1])[2] or 1))))
