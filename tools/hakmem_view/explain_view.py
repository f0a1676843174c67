# SPDX-License-Identifier: MIT
"""`./hakmem explain`: why resident memory is what it is, on the terminal and as a page."""
from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Optional

from rich.console import Console
from rich.text import Text

from . import colours, learner_view, page, process, terminal
from .model import Cause, Explain
from .installed import NAME, page as installed_page
from .terminal import share, size

TOLERANCE = 0.02  # the causes sum to RSS within it
PROFILE = "hakmem profile PID"  # as the library advises
NOTABLE = 0.05  # of RSS: a cause that advice is given for
FREE = ("slab_free", "bins", "remote", "uncarved", "retained_dirty", "retained_clean")  # causes that the next requests use up


@dataclass
class Row:
    """A cause as it is shown."""

    cause: Cause
    colour: str
    size: str
    share: str
    percent: float
    is_first: bool
    advice: str
    held_by: list[str] = field(default_factory=list)  # sites of a running profile, in words


Held = dict[str, list[str]]  # by cause, the largest sites (held_by.py)


def filled_in(text: str, found: Explain) -> str:
    """The library's words, in which a command can be pasted."""
    return text.replace(PROFILE, f"{NAME} profile {found.pid or 'CORE'}")


def rows(found: Explain, held: Optional[Held] = None) -> list[Row]:
    whole = max(found.rss_bytes, found.sum_bytes, 1)
    return [Row(cause, colours.cause(cause.name), size(cause.bytes), share(cause.bytes, whole),
                100 * max(0, cause.bytes) / whole, cause.name == found.first, filled_in(cause.advice, found), (held or {}).get(cause.name, []))
            for cause in found.causes if cause.bytes]


def difference(found: Explain) -> str:
    """A sentence if the causes do not sum to RSS."""
    away = found.sum_bytes - found.rss_bytes
    if not found.rss_bytes or abs(away) <= TOLERANCE * found.rss_bytes:
        return ""
    return (f"The causes sum to {size(found.sum_bytes)}, {size(abs(away))} {'more' if away > 0 else 'less'} than RSS: "
            "memory moved while it was looked at.")


def first_words(found: Explain) -> str:
    """The largest cause in words: the library's, or its title and advice."""
    if found.text:
        return filled_in(found.text, found)
    cause = next((one for one in found.causes if one.name == found.first), None)
    return f"Most of it: {cause.title}. {cause.advice}".strip() if cause else "No cause is named."


def next_words(found: Explain) -> str:
    """The next cause that something lowers, if it is worth a look and the library's sentence leaves it out."""
    whole = max(found.rss_bytes, found.sum_bytes, 1)
    for cause in found.causes:
        if cause.name not in (found.first, "live", "others") and cause.bytes > NOTABLE * whole and cause.advice:
            return "" if cause.advice in found.text else \
                f"Next, {cause.title} ({share(cause.bytes, whole)}): {cause.advice.rstrip('.')}."
    return ""


def reuse(found: Explain) -> str:
    """What of RSS serves the program's next requests, if it is worth a word."""
    sizes = {cause.name: cause.bytes for cause in found.causes}
    free, own = sum(sizes.get(name, 0) for name in FREE), sizes.get("slab_free", 0)
    if free <= NOTABLE * max(found.rss_bytes, 1):
        return ""
    same = f", {size(own)} of it those of the same block sizes" if own else ""
    return f"{size(free)} of RSS is free, and serves the program's next requests{same}."


def peak(found: Explain) -> str:
    """The most that was resident, if that is more."""
    most = process.rss(found.pid, "VmHWM") if found.pid else None
    return f", {size(most)} at its peak" if most and most > found.rss_bytes * (1 + TOLERANCE) else ""


def others(found: Explain) -> int:
    """What is in the caches of threads that are not listed."""
    bins = next((one.bytes for one in found.causes if one.name == "bins"), 0)
    return max(0, bins - sum(thread.cached_bytes for thread in found.threads))


def write(out: Console, found: Explain, title: str, held: Optional[Held] = None, has_learner: bool = False) -> None:
    out.print(Text.assemble((title, "bold"), f"  RSS {size(found.rss_bytes)}{peak(found)}  hakmem {found.version or terminal.NONE}"))
    out.print(Text(first_words(found)))
    if reuse(found):
        out.print(Text(reuse(found)))
    if next_words(found):
        out.print(Text(next_words(found)))
    table = terminal.table()
    wide = 44 if out.width < 120 else 72
    table.add_column("Cause", ratio=3, max_width=wide)
    terminal.right(table, "Resident", "Share")
    room = max(8, min(80, out.width - (68 if out.width < 120 else 96)))
    table.add_column("", no_wrap=True, width=room)
    most = max((row.percent for row in rows(found)), default=0)
    for row in rows(found, held):
        name = Text(row.cause.title, "bold" if row.is_first else "")
        for site in row.held_by:
            held_by = textwrap.wrap(f"held by {site}", wide, subsequent_indent="    ", break_on_hyphens=False)
            name.append("".join(f"\n{line}" for line in held_by), "dim not bold")
        table.add_row(name, row.size, row.share, terminal.single(row.percent, most, room, row.colour))
    out.print()
    out.print(table)
    out.print()
    if difference(found):
        out.print(Text(difference(found) + "\n", "yellow"))
    for note in found.notes:
        out.print(Text(note, "yellow"))
    if found.notes:
        out.print()
    learner_view.write(out, found, has_learner)
    if found.threads:
        listed = terminal.table()
        terminal.right(listed, "Thread", "Cached bytes", "Idle for")
        for thread in found.threads:
            listed.add_row(f"{thread.id or terminal.NONE}", size(thread.cached_bytes),
                           terminal.duration(thread.idle_ms / 1000))
        if others(found):
            listed.add_row("others", size(others(found)), "")
        out.print(terminal.section("Threads with the most in their caches", listed))


def html(found: Explain, title: str, held: Optional[Held] = None) -> str:
    return page.render("explain.html.j2", found=found, title=title, rows=rows(found, held), has_held=bool(held),
                       first=first_words(found), following=next_words(found), reuse=reuse(found), peak=peak(found), difference=difference(found),
                       size=size, duration=terminal.duration, learner=learner_view, learners=learner_view.shown(found),
                       words=installed_page("words"))
