# SPDX-License-Identifier: MIT
"""Rows: workloads with their arguments. The small ones' catalogue is in micro.py, that of real programs in apps.py."""
from __future__ import annotations

import dataclasses
import fnmatch
import shutil
from typing import Optional

from .apps import App
from .errors import UsageError
from .model import RowInfo


REPEATS = 3


@dataclasses.dataclass
class Row:
    info: RowInfo
    quick: bool = False
    ideal: bool = False  # has an arm with inlined lists
    settles: bool = True  # RSS one second after all is freed makes sense
    named: bool = False  # too long for the matrix: only if its whole id is typed
    base: str = "system"  # the C library all its arms run on
    argv: tuple[str, ...] = ()  # a workload: program and arguments; "N*" scales with the run
    app: Optional[App] = None
    command: tuple[str, ...] = ()  # the user's own program

    @property
    def id(self) -> str:
        return self.info.id

    def repeats(self, scale: float) -> int:
        """How many runs a round divides the work into, of which the fastest counts: what disturbs a run only adds
        time, and three short runs seldom all meet it. Not where the amount of work makes the load what it is."""
        amounts = [int(word[:-1]) for word in self.argv if word.endswith("*")]
        divides = self.info.group not in ("memory", "start", "latency")
        return REPEATS if divides and amounts and min(amounts) * scale >= REPEATS else 1

    def arguments(self, scale: float) -> list[str]:
        """The workload's arguments, amounts of work multiplied by the scale."""
        return [str(max(1, round(int(word[:-1]) * scale))) if word.endswith("*") else word for word in self.argv]


def own(command: list[str]) -> Row:
    """The row of the user's own program. That it can be started is looked at here: before anything is built."""
    if shutil.which(command[0]) is None:
        raise UsageError(f"there is no program '{command[0]}' that can be started")
    name = command[0].rsplit("/", 1)[-1]
    info = RowInfo(id=f"own/{name}", group="own", title=" ".join(command)[:80], metric="wall", unit="ms",
                   text="Your program, from start to end.", program=" ".join(command))
    return Row(info, settles=False, command=tuple(command))


def on_newest(row: Row) -> Row:
    """The same row with every arm on the newest C library."""
    info = dataclasses.replace(row.info, id=f"{row.id}@newest", title=f"{row.info.title}, on the newest glibc",
                               group="own" if row.command else "newest")
    return dataclasses.replace(row, info=info, base="newest", ideal=False)


def on_musl(row: Row) -> Row:
    """The same row with every arm on musl."""
    info = dataclasses.replace(row.info, id=f"{row.id}@musl", title=f"{row.info.title}, on musl")
    return dataclasses.replace(row, info=info, base="musl", ideal=False)


def _names(row: Row) -> tuple[str, str]:
    """What a row is called beside its id: its workload (on another base only with that), and its group."""
    workload = row.id.split("/")[0]
    return (workload if row.base != "newest" or "/" not in row.id else f"{workload}@{row.base}"), row.info.group


def _is_meant(row: Row, pattern: str, plain: bool) -> bool:
    ids = [row.id, row.id.removesuffix(f"@{row.base}")] if plain else [row.id]
    if row.named:
        return pattern in ids
    return pattern in _names(row) or any(fnmatch.fnmatch(one, pattern) for one in ids)


def select(rows: list[Row], patterns: list[str]) -> list[Row]:
    """Rows by name, by pattern (`larson/*`), by workload (`larson`) or by group (`threads`). Without a pattern all but
    those that have to be named."""
    if not patterns:
        return [row for row in rows if not row.named]
    chosen: list[Row] = []
    plain = all("@" in row.id for row in rows)  # then the suffix need not be typed
    for pattern in patterns:
        hits = [row for row in rows if _is_meant(row, pattern, plain)]
        if not hits:
            names = sorted({name for row in rows for name in _names(row)})
            raise UsageError(f"unknown row '{pattern}'; there are: {' '.join(names)} "
                             f"(and rows of them, see `./hakmem lab list`)")
        chosen += [row for row in hits if row not in chosen]
    return chosen


def of_app(app: App) -> Row:
    """The row of a real program."""
    info = RowInfo(id=f"app/{app.name}", group="app", title=app.title, text=app.text, metric=app.metric, unit=app.unit,
                   threads=app.threads, program=" ".join(app.programs))
    return Row(info, quick=app.quick, settles=False, app=app)
