# SPDX-License-Identifier: MIT
"""Memory by size, within `./hakmem stats` and `explain`: what was taken, written to, given back, and taken again."""
from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import terminal
from .installed import page
from .model import Band, Explain, Stats
from .terminal import share, size

TITLE = "Memory by size"
ABOUT = ("Taken by all allocations; new from the kernel, so page faults fill it; given back to it; taken again though given "
         f"back; resident, of samples; how long freed memory waits for its reuse. {page('learning')}")
HEADS = ("In use", "Most", "Taken", "New", "Given back", "Again", "Resident", "Reuse")


@dataclass
class Row:
    """A band as it is shown."""

    name: str
    cells: tuple[str, ...]  # as in HEADS


def shown(found: Explain | Stats) -> list[Band]:
    """Bands that were used."""
    return [one for one in found.bands if one.taken_bytes]


def rows(found: Explain | Stats) -> list[Row]:
    """In the order of the library: blocks, then slabs, smallest sizes first."""
    def row(one: Band) -> Row:
        return Row(one.text, (size(one.in_use_bytes), size(one.most_bytes), size(one.taken_bytes),
                              share(one.fresh_bytes, max(1, one.taken_bytes)), size(one.returned_bytes), size(one.again_bytes),
                              share(one.touched_bytes, one.sampled_bytes) if one.sampled_bytes else terminal.NONE,
                              f"{one.reuse_ms} ms" if one.reuse_ms else terminal.NONE))
    return [row(one) for one in shown(found)]


def _table(found: Explain | Stats) -> Table:
    table = terminal.table()
    table.add_column("Of", no_wrap=True)
    terminal.right(table, *HEADS)
    for row in rows(found):
        table.add_row(row.name, *row.cells)
    return table


def write(out: Console, found: Explain | Stats) -> None:
    if shown(found):
        out.print(terminal.section(TITLE, Text(ABOUT, "dim"), _table(found)))
