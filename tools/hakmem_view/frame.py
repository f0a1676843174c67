# SPDX-License-Identifier: MIT
"""One frame of `./hakmem top`: exactly as wide and as high as asked for, from two samples."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from . import colours, terminal, wording
from .installed import NAME
from .model import Stats
from .stats_view import busiest_threads, class_bytes, class_key, class_parts, scaled, superslab_bytes
from .terminal import clip, number, size

WIDE = 150  # from here on classes and threads stand side by side
LEAST_WIDTH, LEAST_HEIGHT = 40, 10
KINDS = (  # of addresses: name, keys, colour
    ("held", ("live", "large", "huge"), colours.LIVE),
    ("cached", ("cached", "remote", "quarantine", "lost"), colours.CACHED),
    ("free", ("slab_free",), colours.FREE),
    ("unfilled", ("uncarved", "slab_tail"), colours.UNCARVED),
    ("retained", ("unused_dirty", "huge_cached_dirty"), colours.DIRTY),
    ("meta", ("meta", "guard", "moving"), colours.META),
)
BYTES_ASKED = "asked_bytes"  # is of no use as a rate
SLOW_PATHS = "slow paths only: cache hits do not count"


@dataclass
class Sample:
    """The statistics at one moment, and what /proc said then."""

    stats: Stats
    seconds: float  # of a clock that only goes on
    rss: Optional[int] = None
    uptime: Optional[float] = None
    names: dict[int, str] = field(default_factory=dict)  # of threads


@dataclass
class Head:
    """What does not change."""

    pid: int
    command: str
    interval: float


def rates(before: Sample, now: Sample) -> list[tuple[str, float]]:
    """Events per second, most first; a counter that fell (a thread ended, a new process) counts as 0."""
    seconds = now.seconds - before.seconds
    if seconds <= 0:
        return []
    found = [(name, (value - before.stats.events.get(name, 0)) / seconds)
             for name, value in now.stats.events.items() if name != BYTES_ASKED]
    return sorted(((name, rate) for name, rate in found if rate > 0), key=lambda one: -one[1])


def _kinds(now: Sample) -> list[tuple[str, int, str]]:
    """Without what was returned to the kernel the kinds are part of RSS, if the program has used all it holds; what
    is left of RSS is that of others: the program's code and data, stacks, other libraries."""
    stats = now.stats
    kinds = [(name, stats.held(*keys), colour) for name, keys, colour in KINDS]
    left = (now.rss or 0) - sum(value for _, value, _ in kinds) + stats.held("hole")
    return [*kinds, ("others", max(0, left), colours.OTHERS)]


def _sentence(stats: Stats) -> str:
    hole = stats.held("hole")
    returned = f", {size(hole)} of them given back" if hole else ""
    return f"addresses{returned}; {NAME} explain says what is resident"


def _line(text: Text, width: int) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    text.truncate(width, overflow="ellipsis")
    return text


def _notable(stats: Stats) -> list[str]:
    found = ["memory is tight"] if stats.limits.get("memory_is_tight") else []
    return found + wording.kept(stats.limits) + wording.decisions(stats.events)


def _facts(usual: list[str], notable: list[str], width: int) -> list[Text]:
    """What is notable has a line of its own where it does not fit beside the usual."""
    whole = Text(" · ".join(usual + notable))
    if whole.cell_len <= width or not notable:
        return [_line(whole, width)]
    return [_line(Text(" · ".join(facts)), width) for facts in (usual, notable)]


def _header(head: Head, now: Sample, width: int, note: str) -> list[Text]:
    stats = now.stats
    kinds = _kinds(now)
    facts = [f"up {terminal.duration(now.uptime)}", f"RSS {size(now.rss)}",
             f"mapped {size(superslab_bytes(stats) + stats.held('huge', 'huge_cached'))}",
             terminal.count(stats.counts.get("superslabs", 0), "superslab"),
             terminal.count(stats.counts.get("threads", len(stats.threads)), "thread")]
    legend = terminal.lines([terminal.key((f"{name} {size(value)}", colour)) for name, value, colour in kinds], width)
    title = Text.assemble((f"hakmem {stats.version} ", "bold"), (f"pid {head.pid}  ", "dim"), head.command)
    whole = sum(value for _, value, _ in kinds)
    return [_line(title, width), *_facts(facts, _notable(stats), width),
            terminal.bar([(value, colour) for _, value, colour in kinds], whole, width),
            *(_line(one, width) for one in legend),
            _line(Text(note, "yellow") if note else Text(_sentence(stats), "dim"), width)]


def _rate_lines(before: Sample, now: Sample, width: int, most: int) -> list[Text]:
    columns = max(1, width // 38)
    wide = width // columns
    found = rates(before, now)
    lines = [_line(Text.assemble(("Events per second", "bold"), (f"  {SLOW_PATHS}", "dim")), width)]
    if not found:
        return [*lines, Text("none", "dim")]
    for at in range(0, min(len(found), columns * most), columns):
        line = Text()
        for name, rate in found[at:at + columns]:
            cell = Text(f"{terminal.event(name, rate):>8}  ").append(clip(wording.spoken(name), wide - 12), "dim")
            cell.pad_right(max(0, wide - cell.cell_len))
            line.append_text(cell)
        lines.append(_line(line, width))
    return lines


def _class_lines(stats: Stats, width: int, most: int) -> list[Text]:
    rows = stats.rows()
    room, longest = width - 52, max((class_bytes(row) for _, row in rows), default=0)
    lines = [_line(Text.assemble(("Classes by bytes the program holds", "bold"), "   ", class_key(2)), width),
             _line(Text(f"{'block':>9}{'slabs':>8}{'held':>11}{'cached':>11}{'free':>11}"
                        f"{_scale(longest, room)}", "dim"), width)]
    shown = _shown(len(rows), most)
    for name, row in rows[:shown]:
        line = Text(f"{name:>9}{number(row.slabs):>8}{size(row.live * row.bytes):>11}"
                    f"{size(row.cached * row.bytes):>11}{size(row.free * row.bytes):>11}  ")
        if room >= 4:
            line.append_text(scaled(class_parts(row), longest, room))
        lines.append(_line(line, width))
    left = rows[shown:]
    return lines + _more(len(left), most, f"{size(sum(class_bytes(row) for _, row in left))} together", width)


def _scale(longest: int, room: int) -> str:
    """What a bar of the whole width stands for."""
    return f"  full bar: {size(longest)}" if longest and room >= 20 else ""


def _shown(rows: int, most: int) -> int:
    """How many of them fit if those left out are told in a line of their own."""
    return max(0, rows if rows <= most else most - 1)


def _more(left: int, most: int, words: str, width: int) -> list[Text]:
    return [_line(Text(f"{left:>7} more, {words}", "dim"), width)] if left and most > 0 else []


def _thread_lines(now: Sample, width: int, most: int) -> list[Text]:
    rows = busiest_threads(now.stats)
    room, longest = min(40, width - 65), max((row.cached_bytes for row in rows), default=0)
    lines = [_line(Text(f"Threads by cached bytes ({len(rows)})", "bold"), width),
             _line(Text(f"{'thread':>9} {'name':<16}{'cached':>10}{'idle':>13}"
                        f"{_scale(longest, 20 + room)}", "dim"), width)]
    shown = _shown(len(rows), most)
    for row in rows[:shown]:
        name = clip(now.names.get(row.id, ""), 15)
        line = Text(f"{row.id or terminal.NONE:>9} {name:<16}{size(row.cached_bytes):>10}"
                    f"{terminal.duration(row.idle_ms / 1000):>13}  ")
        if room >= 6:
            line.append_text(terminal.single(row.cached_bytes, longest, room, colours.CACHED))
        lines.append(_line(line, width))
    left = rows[shown:]
    return lines + _more(len(left), most, f"{size(sum(row.cached_bytes for row in left))} cached", width)


def _body(now: Sample, width: int, height: int) -> list[RenderableType]:
    stats = now.stats
    if width >= WIDE:
        left = width * 3 // 5
        both = Table.grid(padding=0)
        both.add_column(width=left)
        both.add_column(width=width - left)
        both.add_row(Group(*_class_lines(stats, left - 2, height - 2)),
                     Group(*_thread_lines(now, width - left, height - 2)))
        return [both]
    lows = min(len(stats.threads), max(1, height // 3 - 2))
    lines: list[RenderableType] = [*_class_lines(stats, width, height - lows - 5), Text("")]
    return (lines + list(_thread_lines(now, width, lows)))[:height]


def render(head: Head, before: Sample, now: Sample, width: int, height: int, note: str = "") -> Group:
    """`note` is shown in the header: that there is no answer, say."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Group(_line(Text(f"{head.command}: RSS {size(now.rss)}"), max(1, width)),
                     _line(Text(f"at least {LEAST_WIDTH} × {LEAST_HEIGHT} is needed"), max(1, width)))
    lines = _header(head, now, width, note)
    lines += [*_rate_lines(before, now, width, max(1, min(6, (height - 12) // 3))), Text("")]
    return Group(*[*lines, *_body(now, width, max(0, height - len(lines)))][:height])
