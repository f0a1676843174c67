# SPDX-License-Identifier: MIT
"""Geometric means per kind of work and allocator: what README and its picture show.

All rows of all groups count, by a fixed rule: nothing is chosen by its result. The user's own programs are left out,
and rows that time single calls.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from . import stats
from .model import ArmInfo, RowSummary, RunSummary

GROUPS = {"small": "small blocks", "program": "like programs", "threads": "threads", "realloc": "realloc",
          "large": "large blocks", "memory": "memory", "start": "start", "app": "real programs"}  # others follow
LEFT_OUT = ("own", "latency")  # the latter's times hold the clock's
ALL = ""  # the group of all rows


@dataclass
class Mean:
    time: float = math.nan
    peak: float = math.nan
    rows: int = 0  # on which it took part
    failures: int = 0


@dataclass
class Means:
    arms: list[ArmInfo]  # by their time over all rows; the subject at its place
    groups: list[tuple[str, str, int]]  # key, title, number of rows
    values: dict[tuple[str, str], Mean] = field(default_factory=dict)  # by arm and group
    rows: int = 0

    def of(self, arm: str, group: str = ALL) -> Mean:
        return self.values.get((arm, group), Mean())


def _mean(rows: list[RowSummary], arm: str) -> Mean:
    cells = [row.cells[arm] for row in rows if arm in row.cells]
    good = [cell for cell in cells if not cell.failure]
    return Mean(stats.geometric_mean([cell.time_ratio or math.nan for cell in good]),
                stats.geometric_mean([cell.peak_ratio or math.nan for cell in good]),
                len(cells), len(cells) - len(good))


def means(summary: RunSummary) -> Means:
    by_group: dict[str, list[RowSummary]] = {}
    for row in summary.rows:
        if row.row.group not in LEFT_OUT:
            by_group.setdefault(row.row.group, []).append(row)
    order = [key for key in GROUPS if key in by_group] + sorted(key for key in by_group if key not in GROUPS)
    everything = [row for key in order for row in by_group[key]]
    arms = [arm for arm in summary.arms if arm.kind in ("subject", "peer") and not arm.skip]
    found = Means(arms, [(key, GROUPS.get(key, key), len(by_group[key])) for key in order], rows=len(everything))
    for arm in arms:
        found.values[arm.name, ALL] = _mean(everything, arm.name)
        for key in order:
            found.values[arm.name, key] = _mean(by_group[key], arm.name)
    found.arms = sorted((arm for arm in arms if found.of(arm.name).rows),
                        key=lambda arm: (math.isnan(found.of(arm.name).time), found.of(arm.name).time))
    return found
