# SPDX-License-Identifier: MIT
"""Blocks above 64 KiB by size, within `./hakmem explain`: what was taken, written to, and taken again."""
from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import terminal
from .model import Band, Explain
from .terminal import share, size

TITLE = "Blocks above 64 KiB"
ABOUT = "Fresh memory costs page faults; written: of freed blocks; again: when freed memory is taken. docs/learning.md"
HEADS = ("In use", "Most", "Taken", "Fresh", "Written", "Again")


@dataclass
class Row:
    """A band as it is shown."""

    name: str
    cells: tuple[str, ...]  # as in HEADS


def shown(found: Explain) -> list[Band]:
    """Bands that were used."""
    return [one for one in found.bands if one.taken_bytes]


def _bound(value: int) -> str:
    """A whole number of a unit."""
    return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"


def rows(found: Explain) -> list[Row]:
    """Smallest sizes first, by the bounds that the library tells."""
    bounds = sorted(one.from_bytes for one in found.bands)

    def row(one: Band) -> Row:
        above = [bound for bound in bounds if bound > one.from_bytes]
        name = f"to {_bound(above[0])}" if above else f"above {_bound(one.from_bytes)}"
        return Row(name, (size(one.in_use_bytes), size(one.most_bytes), size(one.taken_bytes), share(one.fresh_bytes, max(1, one.taken_bytes)),
                          share(one.touched_bytes, one.sampled_bytes) if one.sampled_bytes else terminal.NONE,
                          f"{one.reuse_ms} ms" if one.reuse_ms else terminal.NONE))
    return [row(one) for one in sorted(shown(found), key=lambda one: one.from_bytes)]


def _table(found: Explain) -> Table:
    table = terminal.table()
    table.add_column("Sizes", no_wrap=True)
    terminal.right(table, *HEADS)
    for row in rows(found):
        table.add_row(row.name, *row.cells)
    return table


def write(out: Console, found: Explain) -> None:
    if shown(found):
        out.print(terminal.section(TITLE, Text(ABOUT, "dim"), _table(found)))
