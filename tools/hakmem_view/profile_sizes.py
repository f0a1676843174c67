# SPDX-License-Identifier: MIT
"""Bytes in use by the size of blocks, and the function that holds most of each: `hakmem profile --sizes`. By the standard
library alone."""
from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from .profile_model import LIKELY, Size, Value
from .profile_names import Named, at_line, short
from .profile_report import FOOT, error_cell
from .wording import clip, number, share, size

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
HEAD = ("Blocks of", "In use", "±", "Objects")
NOTHING = "No block that was sampled is in use, or the profile is of an older version, without sizes."


@dataclass
class Bin:
    """Blocks of `begin` bytes to less than twice that."""

    begin: int
    value: Value
    error: float
    where: str  # the function that holds most of it
    part: float  # of the bytes

    @property
    def name(self) -> str:
        return f"{_power(self.begin)} – {_power(2 * self.begin)}"


def _power(value: int) -> str:
    """A power of two without decimals."""
    at = min(len(UNITS) - 1, (value.bit_length() - 1) // 10)
    return f"{value >> 10 * at} {UNITS[at]}"


def _error(sizes: list[Size]) -> float:
    """A sample of S bytes with the weight w adds w·(w−1)·S²; within a range of sizes all are taken alike."""
    return LIKELY * math.sqrt(math.fsum(one.bytes * max(0.0, one.bytes - one.samples * one.bytes / one.objects) / one.samples
                                        for one in sizes if one.samples and one.objects))


def bins(named: Named) -> list[Bin]:
    """The smallest first; those without a sample are left out."""
    of: dict[int, list[Size]] = defaultdict(list)
    functions: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for site in named.sites:
        frame = named.own(site)[0]
        for one in site.sizes:
            of[one.begin].append(one)
            functions[one.begin][short(frame.function) + (at_line(frame) if site.stack else "")] += one.bytes
    found = []
    for begin, sizes in sorted(of.items()):
        value = Value(sum(one.samples for one in sizes), *(math.fsum(getattr(one, key) for one in sizes) for key in ("objects", "bytes")))
        where, most = max(functions[begin].items(), key=lambda one: one[1])
        found.append(Bin(begin, value, _error(sizes), where, most / value.bytes if value.bytes else 0.0))
    return found


def lines(named: Named, width: int = 80) -> list[str]:
    found = bins(named)
    if not found:
        return [NOTHING]
    rows = [(one.name, size(one.value.bytes), error_cell(one.value, one.error), number(round(one.value.objects))) for one in found]
    widths = [max(len(row[at]) for row in [HEAD, *rows]) for at in range(len(HEAD))]
    text = ["  ".join(cell.rjust(wide) for cell, wide in zip(HEAD, widths)) + "  Held most by"]
    for one, row in zip(found, rows):
        cells = "  ".join(cell.rjust(wide) for cell, wide in zip(row, widths))
        text.append(clip(f"{cells}  {one.where} ({share(one.part, 1)})", width))
    return [*text, FOOT]
