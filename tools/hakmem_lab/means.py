# SPDX-License-Identifier: MIT
"""Geometric means per kind of work and allocator: what README and its picture show, and the rule for means over all
rows.

All rows of all groups count, by a fixed rule: nothing is chosen by its result. The user's own programs are left out,
and rows that time single calls. Rows on the newest C library are a group of their own, outside the mean of all: they
are workloads that count already. So are the patterns that some allocator is known to be bad at: they were chosen.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from . import stats
from .model import ArmInfo, ArmSummary, RowSummary, RunSummary

GROUPS = {"small": "small blocks", "program": "like programs", "threads": "threads", "realloc": "realloc",
          "large": "large blocks", "cliff": "known cliffs", "memory": "memory", "start": "start", "app": "real programs",
          "newest": "newest glibc"}  # others follow
LEFT_OUT = ("own", "latency")  # the latter's times hold the clock's
APART = ("newest", "cliff")  # groups that are no part of the mean of all rows
ENOUGH = 0.75  # of the rows: with figures on fewer, an arm has no say in which rows are common
ALL = ""  # the group of all rows


@dataclass
class Mean:
    time: float = math.nan
    peak: float = math.nan
    rows: int = 0  # on which it has figures
    failures: int = 0

    @property
    def took_part(self) -> bool:
        return self.rows + self.failures > 0


@dataclass
class Means:
    arms: list[ArmInfo]  # by their time over all rows, those without one last
    groups: list[tuple[str, str, int]]  # key, title, number of rows
    values: dict[tuple[str, str], Mean] = field(default_factory=dict)  # by arm and group
    rows: int = 0  # of all groups but those apart
    common: int = 0  # of these, the rows of the means over all

    def of(self, arm: str, group: str = ALL) -> Mean:
        return self.values.get((arm, group), Mean())


def has_figures(row: RowSummary, arm: str) -> bool:
    cell = row.cells.get(arm)
    return cell is not None and not cell.failure and cell.time is not None


def together(rows: list[RowSummary]) -> list[RowSummary]:
    """Without the groups apart, unless there is nothing else."""
    return [row for row in rows if row.row.group not in APART] or rows


def common_rows(rows: list[RowSummary], arms: list[str]) -> list[RowSummary]:
    """The rows of the means over all: those on which every arm has figures that has them on three quarters of the
    rows. So an arm that fails on its worst rows does not gain by it, and one that fails nearly everywhere takes no
    row from the others."""
    counted = together(rows)
    steady = [arm for arm in arms if sum(has_figures(row, arm) for row in counted) >= ENOUGH * len(counted)]
    return [row for row in counted if all(has_figures(row, arm) for arm in steady)]


def is_ranked(common: list[RowSummary], arm: str) -> bool:
    """Whether an arm has a mean over the common rows: only on the same rows as the others."""
    return bool(common) and all(has_figures(row, arm) for row in common)


def mean_over(rows: list[RowSummary], arm: str) -> tuple[float, float]:
    """Geometric means of an arm's ratios, of time and of peak memory, over the rows on which it has figures."""
    cells = [row.cells[arm] for row in rows if arm in row.cells and not row.cells[arm].failure]
    return (stats.geometric_mean([cell.time_ratio or math.nan for cell in cells]),
            stats.geometric_mean([cell.peak_ratio or math.nan for cell in cells]))


def arm_summary(rows: list[RowSummary], common: list[RowSummary], arm: str) -> ArmSummary:
    """An arm's part in all the rows, and its means over the common ones."""
    counted = together(rows)
    return ArmSummary(arm, sum(has_figures(row, arm) for row in counted),
                      *mean_over(common if is_ranked(common, arm) else [], arm),
                      sum(row.best_time == arm for row in counted),
                      sum(1 for row in rows if arm in row.cells and row.cells[arm].failure))


def _mean(rows: list[RowSummary], arm: str, over: list[RowSummary]) -> Mean:
    """Of an arm's part in the rows; the mean itself over some of them."""
    return Mean(*mean_over(over, arm), sum(has_figures(row, arm) for row in rows),
                sum(1 for row in rows if arm in row.cells and row.cells[arm].failure))


@dataclass
class Held:
    """RSS against live bytes: geometric means over the same rows for all."""

    rows: list[RowSummary] = field(default_factory=list)
    arms: dict[str, tuple[float, float]] = field(default_factory=dict)  # at the peak, at the end; by the latter


def live_rows(summary: RunSummary) -> list[RowSummary]:
    """The rows whose memory is looked at against what lives: at the end of the work too."""
    return [row for row in together(summary.ranked) if any(cell.end_to_live for cell in row.cells.values())]


def held(summary: RunSummary) -> Held:
    """Of the allocators that have both ratios on all these rows."""
    found, means_of = Held(live_rows(summary)), {}
    for arm in summary.arms:
        cells = [row.cells.get(arm.name) for row in found.rows]
        if cells and arm.kind in ("subject", "peer") and all(
                cell is not None and cell.peak_to_live and cell.end_to_live for cell in cells):
            means_of[arm.name] = (stats.geometric_mean([cell.peak_to_live for cell in cells]),
                                  stats.geometric_mean([cell.end_to_live for cell in cells]))
    found.arms = dict(sorted(means_of.items(), key=lambda item: item[1][1]))
    return found


def means(summary: RunSummary) -> Means:
    by_group: dict[str, list[RowSummary]] = {}
    for row in summary.rows:
        if row.row.group not in LEFT_OUT:
            by_group.setdefault(row.row.group, []).append(row)
    order = [key for key in GROUPS if key in by_group] + sorted(key for key in by_group if key not in GROUPS)
    everything = together([row for key in order for row in by_group[key]])
    arms = [arm for arm in summary.arms if arm.kind in ("subject", "peer") and not arm.skip]
    common = common_rows(everything, [arm.name for arm in arms])
    found = Means(arms, [(key, GROUPS.get(key, key), len(by_group[key])) for key in order], rows=len(everything),
                  common=len(common))
    for arm in arms:
        over = common if is_ranked(common, arm.name) else []
        found.values[arm.name, ALL] = _mean(everything, arm.name, over)
        for key in order:
            found.values[arm.name, key] = _mean(by_group[key], arm.name, by_group[key])
    found.arms = sorted((arm for arm in arms if any(found.of(arm.name, key).took_part for key in order)),
                        key=lambda arm: (math.isnan(found.of(arm.name).time), found.of(arm.name).time))
    return found
