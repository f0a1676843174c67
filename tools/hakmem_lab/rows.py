# SPDX-License-Identifier: MIT
"""Rows: workloads with their arguments. The catalogue of the small ones stands in micro.py, real programs in apps.py."""
from __future__ import annotations

import dataclasses
import fnmatch
from typing import Optional

from .apps import App
from .errors import UsageError
from .model import RowInfo


@dataclasses.dataclass
class Row:
    info: RowInfo
    quick: bool = False
    ideal: bool = False  # has an arm with inlined lists
    settles: bool = True  # RSS one second after all is freed makes sense
    base: str = "system"  # the C library all its arms run on
    argv: tuple[str, ...] = ()  # a workload: program and arguments; "N*" scales with the run
    app: Optional[App] = None
    command: tuple[str, ...] = ()  # the user's own program

    @property
    def id(self) -> str:
        return self.info.id

    def arguments(self, scale: float) -> list[str]:
        """The workload's arguments, amounts of work multiplied by the scale."""
        return [str(max(1, round(int(word[:-1]) * scale))) if word.endswith("*") else word for word in self.argv]


def own(command: list[str]) -> Row:
    """The row of the user's own program."""
    name = command[0].rsplit("/", 1)[-1]
    info = RowInfo(id=f"own/{name}", group="own", title=" ".join(command)[:80], metric="wall", unit="ms",
                   text="Your program, from start to end.", program=" ".join(command))
    return Row(info, settles=False, command=tuple(command))


def on_newest(row: Row) -> Row:
    """The same row with every arm on the newest C library."""
    info = dataclasses.replace(row.info, id=f"{row.id}@newest", title=f"{row.info.title}, on the newest glibc")
    return dataclasses.replace(row, info=info, base="newest", ideal=False, quick=False)


def select(rows: list[Row], patterns: list[str]) -> list[Row]:
    """Rows by name, by pattern (`larson/*`), by workload (`larson`) or by group (`threads`)."""
    if not patterns:
        return rows
    chosen: list[Row] = []
    for pattern in patterns:
        hits = [row for row in rows if fnmatch.fnmatch(row.id, pattern) or row.id.split("/")[0] == pattern
                or row.info.group == pattern]
        if not hits:
            names = sorted({row.id.split("/")[0] for row in rows} | {row.info.group for row in rows})
            raise UsageError(f"unknown bench '{pattern}'; there are: {' '.join(names)} "
                             f"(and rows of them, see `./hakmem lab list`)")
        chosen += [row for row in hits if row not in chosen]
    return chosen


def of_app(app: App) -> Row:
    """The row of a real program."""
    info = RowInfo(id=f"app/{app.name}", group="app", title=app.title, text=app.text, metric=app.metric, unit=app.unit,
                   threads=app.threads, program=" ".join(app.programs))
    return Row(info, quick=app.quick, settles=False, app=app)
