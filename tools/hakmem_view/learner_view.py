# SPDX-License-Identifier: MIT
"""What the learner decided, within `./hakmem explain`: keep times of each pool, and what they cost."""
from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import terminal
from .installed import page
from .model import Explain, Learner, Strategy
from .terminal import keep_time, size

TITLE = "How long unused memory is worth keeping"
ABOUT = f"Prices in bytes a second, of the last seconds; {page('learning')} explains them."
COUNTERFACTUAL = "The fixed keep time is in force (learn:counterfactual); this is what the learner would do."
NEAR_LIMIT = "Near the limit of its container or control group the fixed keep time is in force; this is what the learner would do."
POOLS = {"units": "units of 64 KiB", "huge blocks": "blocks above 1 MiB"}


@dataclass
class Row:
    """A keep time of a pool as it is shown."""

    pool: str  # empty in all rows of a pool but the first
    keep: str
    role: str
    taken: str
    held: str
    price: str
    is_kept: bool


@dataclass
class Bar:
    """The price of a keep time in percent of the pool's highest."""

    keep: str
    role: str
    price: str
    taken_percent: float
    held_percent: float
    is_kept: bool


def shown(found: Explain) -> list[Learner]:
    """With learn:0 none."""
    return [one for one in found.learners if one.is_on]


def role(learner: Learner, keep_ms: int) -> str:
    """Why a keep time is worth a row; empty if it is not."""
    since = terminal.duration(learner.since_ms / 1000)
    chosen = f"{'in force' if learner.acts else 'would be in force'} for {since}"
    roles = ((learner.keep_ms, chosen), (learner.standard_ms, "standard"), (learner.cheapest_ms, "cheapest"))
    return ", ".join(words for value, words in roles if value == keep_ms)


def rows(learner: Learner) -> list[Row]:
    """The one in force first, then the standard and the cheapest if they are others."""
    order = (learner.keep_ms, learner.standard_ms, learner.cheapest_ms)
    named = sorted((one for one in learner.strategies if one.keep_ms in order), key=lambda one: order.index(one.keep_ms))
    return [Row(learner.pool if at == 0 else "", keep_time(one.keep_ms), role(learner, one.keep_ms),
                size(one.taken_bytes), size(one.held_bytes), size(one.price), one.keep_ms == learner.keep_ms)
            for at, one in enumerate(named)]


def bars(learner: Learner) -> list[Bar]:
    most = max((one.price for one in learner.strategies), default=0)

    def bar(one: Strategy) -> Bar:
        return Bar(keep_time(one.keep_ms), role(learner, one.keep_ms), f"{size(one.price)}/s",
                   *(100 * part / most if most else 0.0 for part in (one.taken_bytes, one.held_bytes)),
                   one.keep_ms == learner.keep_ms)
    return [bar(one) for one in learner.strategies]


def notes(learners: list[Learner]) -> list[str]:
    waiting = [one for one in learners if not one.acts]
    found = [COUNTERFACTUAL if waiting[0].is_counterfactual else NEAR_LIMIT] if waiting else []
    locked = [one.pool for one in learners if one.is_locked]
    if locked:
        found.append(f"For {' and '.join(POOLS.get(name, name) for name in locked)} the last change cost more than it saved: the fixed "
                     "time is in force for a while.")
    return found


def short(learners: list[Learner]) -> str:
    """Which keep times are in force."""
    return f"{kept(learners)}. These times are learned; --learner shows what others would cost."


def kept(learners: list[Learner]) -> str:
    times = ", ".join(f"{keep_time(one.keep_ms if one.acts else one.standard_ms)} ({POOLS.get(one.pool, one.pool)})" for one in learners)
    return f"Memory without a block in use stays for the next requests, and goes back to the system after {times}"


def _table(learners: list[Learner]) -> Table:
    table = terminal.table()
    table.add_column("Unused", no_wrap=True)
    terminal.right(table, "Kept")
    table.add_column("")
    terminal.right(table, "Taken again", "Held", "Price")
    for learner in learners:
        for row in rows(learner):
            style = "bold" if row.is_kept else ""
            table.add_row(*(Text(cell, style) for cell in (row.pool, row.keep, row.role, row.taken, row.held, row.price)))
    return table


def write(out: Console, found: Explain, is_whole: bool) -> None:
    learners = shown(found)
    if not learners:
        return
    if not is_whole:
        out.print(Text(short(learners), "dim"))
        for note in notes(learners):
            out.print(Text(note, "yellow"))
        out.print()
        return
    out.print(terminal.section(TITLE, Text(ABOUT, "dim"), *(Text(note, "yellow") for note in notes(learners)),
                               _table(learners)))
