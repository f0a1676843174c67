# SPDX-License-Identifier: MIT
"""What a row is like, from its measurements: two modes, or page faults that decide it."""
from __future__ import annotations

from typing import Optional

from .model import Cell, RowSummary

FAULT_US = 0.25  # a minor fault takes at least that
SHARE = 0.1  # of the CPU time: from there on faults decide
ENOUGH_FAULTS = 100  # in a measured section: the ratio of fewer says nothing


def modes(cell: Optional[Cell]) -> Optional[tuple[float, float]]:
    """The low and the high mode; None for a cell without, or no cell."""
    if cell is None or cell.failure or not cell.mode_low or not cell.mode_high:
        return None
    return cell.mode_low, cell.mode_high


def has_modes(row: RowSummary) -> bool:
    """Whether any arm's rounds fall into two modes. Then the machine decides a part of the row: one that fetches
    memory from its host late does that to rows that use much of it."""
    return any(modes(cell) for cell in row.cells.values())


def is_decided_by_faults(row: RowSummary) -> bool:
    """Whether page faults take a tenth of any arm's time or more, at the least that a fault takes."""
    return any(cell.minflt * FAULT_US >= SHARE * cell.cpu_ms * 1000 for cell in row.cells.values()
               if not cell.failure and cell.minflt and cell.cpu_ms)


def fault_ratio(new: Optional[Cell], old: Optional[Cell]) -> Optional[float]:
    """Of faults per operation; None where there are too few to compare."""
    if new is None or old is None or not old.faults_per_op or new.faults_per_op is None:
        return None
    return new.faults_per_op / old.faults_per_op if max(new.minflt, old.minflt) >= ENOUGH_FAULTS else None
