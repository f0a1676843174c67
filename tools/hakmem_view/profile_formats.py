# SPDX-License-Identifier: MIT
"""A profile in the text forms of others: folded stacks, Speedscope's JSON, jemalloc's heap_v2. By the standard library
alone; pprof's protobuf is in profile_pprof.py."""
from __future__ import annotations

import json
from typing import Optional

from .profile_model import KINDS, Profile, Site
from .profile_names import Frame, Named

SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"


def _folded_name(frame: Frame) -> str:
    """Semicolons part frames, and the last blank parts the value."""
    return " ".join(frame.function.replace(";", ",").split()) or "?"


def collapsed(named: Named, kind: str) -> str:
    """A line a stack, outermost frame first (flamegraph.pl and most others read it)."""
    sums: dict[str, float] = {}
    for site in named.sites:
        line = ";".join(_folded_name(frame) for frame, _ in reversed(named.stack(site)))
        sums[line] = sums.get(line, 0.0) + KINDS[kind].of(site)
    return "".join(f"{line} {round(value)}\n" for line, value in sorted(sums.items()) if round(value) > 0)


def speedscope(named: Named, title: str, kind: str) -> dict:
    """One profile a kind of bytes; `kind` is the one that is shown first."""
    frames: dict[tuple, int] = {}
    stacks = []
    for site in named.sites:
        stacks.append([frames.setdefault((frame.function, frame.file, frame.line), len(frames))
                       for frame, _ in reversed(named.stack(site))])
    profiles, first = [], 0
    for one in KINDS.values():
        pairs = [(stack, round(one.of(site))) for stack, site in zip(stacks, named.sites) if round(one.of(site)) > 0]
        if not pairs and one.name != kind:
            continue
        first = len(profiles) if one.name == kind else first
        profiles.append({"type": "sampled", "name": one.title, "unit": "bytes" if one.unit == "bytes" else "none",
                         "startValue": 0, "endValue": sum(value for _, value in pairs),
                         "samples": [stack for stack, _ in pairs], "weights": [value for _, value in pairs]})
    return {"$schema": SPEEDSCOPE, "name": title, "exporter": f"hakmem {named.profile.version}", "activeProfileIndex": first,
            "shared": {"frames": [_frame(*key) for key in frames]}, "profiles": profiles}


def _frame(name: str, file: str, line: int) -> dict:
    return {"name": name, **({"file": file} if file else {}), **({"line": line} if line else {})}


def speedscope_text(named: Named, title: str, kind: str) -> str:
    return json.dumps(speedscope(named, title, kind), separators=(",", ":")) + "\n"


def _counts(sites: list[Site]) -> str:
    sums = [sum(values) for values in zip(*((one.inuse.objects, one.inuse.bytes, one.alloc.objects, one.alloc.bytes)
                                            for one in sites))] or [0, 0, 0, 0]
    return "t*: {}: {} [{}: {}]".format(*map(round, sums))


def heap_v2(found: Profile, sites: Optional[list[Site]] = None) -> str:
    """What jeprof reads. It divides a line by the chance of its mean size at the rate of the first line; sites have samples
    of several sizes and rates. So the sums have their weights, and the rate is one byte, which changes nothing."""
    sites = found.sites if sites is None else sites
    text = ["heap_v2/1", f"  {_counts(sites)}"]
    for site in sites:
        text += ["@" + "".join(f" {address:#x}" for address in site.stack), f"  {_counts([site])}"]
    text += ["", "MAPPED_LIBRARIES:"]
    text += [f"{one.start:08x}-{one.end:08x} r-xp {one.offset:08x} 00:00 0 {one.path}" for one in found.mappings]
    return "\n".join(text) + "\n"
