# SPDX-License-Identifier: MIT
"""`./hakmem profile` on the terminal: a table, and one that lives until q, Ctrl-C or the end of the process."""
from __future__ import annotations

import time
from contextlib import suppress
from typing import Optional

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from . import process, profile_list, profile_report, profile_sizes, terminal
from .profile_command import Asked, Session, title
from .profile_group import Row
from .profile_model import Profile
from .profile_names import Named
from .top import LOOK, STOPPED, keys, wants_end

INTERVAL = 1.0
NARROW = 110  # columns: below, places have lines of their own
FOLDED = 0.8  # of the width is what a place in a column may be long


def table(report: profile_report.Report, width: int) -> RenderableType:
    head = [Text(report.head[0], "bold"), *(Text(line) for line in report.head[1:])]
    if not report.rows:
        return Group(*head, Text(""), Text(report.left))
    found = terminal.table()
    terminal.right(found, *report.columns)
    is_wide = width >= NARROW
    if is_wide:
        found.add_column("Where", ratio=1, overflow="fold")
    parts: list[RenderableType] = [*head, Text(""), Text(report.title, "bold")]
    for row in report.rows:
        place = [_place(row, FOLDED * width)] if is_wide else []
        found.add_row(*row.cells, *place)
    parts.append(found)
    if not is_wide:
        parts = [*parts[:-1], *_narrow(report, width)]
    parts += [Text(report.left, "dim")] if report.left else []
    return Group(*parts, Text(profile_report.foot(report), "dim"))


def _place(row: Row, width: int) -> Text:
    text = Text(row.place(int(width)))
    text.stylize("bold", 0, len(row.where))
    return text


def _narrow(report: profile_report.Report, width: int) -> list[Text]:
    widths = [max(len(name), *(len(row.cells[at]) for row in report.rows)) for at, name in enumerate(report.columns)]
    gap = "  " if sum(widths) + 2 * len(widths) <= width + 2 else " "
    found = [Text(gap.join(name.rjust(wide) for name, wide in zip(report.columns, widths)), "dim", no_wrap=True)]
    for row in report.rows:
        found.append(Text(gap.join(cell.rjust(wide) for cell, wide in zip(row.cells, widths)), no_wrap=True))
        line = Text("    ", no_wrap=True, overflow="ellipsis").append_text(_place(row, width - 4))
        found.append(line)
    return found


def write(out: Console, named: Named, about: str, asked: Asked, before: Optional[Profile], since: Optional[Profile] = None) -> None:
    if asked.listed:
        for line in profile_list.lines(named, asked.listed, asked.kind, out.width):
            out.print(Text(line), no_wrap=True)
        return
    if asked.sizes:
        out.print(Text(profile_report.head(named.profile, about)[0], "bold"))
        for line in ["", *profile_sizes.lines(named, out.width)]:
            out.print(Text(line), no_wrap=True)
        return
    out.print(table(profile_report.make(named, about, asked.mode, before, asked.rows, since, asked.by), out.width))


def _fitting(asked: Asked, out: Console) -> int:
    lines = 1 if out.width >= NARROW else 2
    return max(1, min(asked.rows or out.height, (out.height - 12) // lines))


def live(out: Console, session: Session, asked: Asked) -> Named:
    """The last profile that was shown."""
    begin, named = session.first.found, asked.named(session.first.found, session.pid)
    with keys() as has_keys, Live(console=out, screen=True, auto_refresh=False) as shown, suppress(KeyboardInterrupt):
        due = 0.0
        while True:
            if time.monotonic() >= due:
                try:
                    named = Named(next(session.shots(0, 1)).found, session.pid, named)
                except StopIteration:
                    return named
                note = STOPPED if process.state(session.pid) in ("T", "t") else "q ends it"
                before = begin if asked.mode in ("diff", "leaks") else None
                report = profile_report.make(named, title(named.profile, session.pid), asked.mode, before, _fitting(asked, out),
                                             begin, asked.by)
                shown.update(Group(table(report, out.width), Text(note, "dim")), refresh=True)
                due = time.monotonic() + INTERVAL
            if wants_end(has_keys, max(0.0, min(LOOK, due - time.monotonic()))):
                return named
    return named
