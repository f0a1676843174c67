# SPDX-License-Identifier: MIT
"""`./hakmem stats`: what the memory consists of, which classes and threads hold it."""
from __future__ import annotations

from typing import Optional

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from . import colours, plain, process, terminal, wording
from .installed import NAME
from .model import ClassRow, Stats, ThreadRow
from .observer import Listed
from .terminal import number, size

PARTS = (  # key, text, colour; together they are the superslabs, but for heads and tails of slabs
    ("live", "small blocks the program holds", colours.LIVE),
    ("cached", "blocks in the bins of threads", colours.CACHED),
    ("remote", "freed by others, not yet received", colours.CAUSES["remote"]),
    ("quarantine", "freed, held back for checks", colours.CAUSES["guard"]),
    ("lost", "freed, in caches that a fork left", colours.CAUSES["remote"]),
    ("slab_free", "free blocks on the lists of slabs", colours.FREE),
    ("uncarved", "slabs' memory not used so far", colours.CAUSES["uncarved"]),
    ("slab_tail", "ends of slabs after the last block", colours.META),
    ("large", "large blocks, in steps of 64 KiB", colours.LARGE),
    ("moving", "between two uses at this moment", colours.OTHER),
    ("unused_dirty", "unused parts of superslabs that hold memory", colours.DIRTY),
    ("unused_clean", "unused parts of superslabs without memory", colours.CLEAN),
)
ASIDE = (("guard", "small blocks watched by the guard", colours.CAUSES["guard"]),
         ("meta", "our own records", colours.META))
HUGE = (("huge", "huge blocks the program holds", colours.HUGE),
        ("huge_cached", "huge blocks kept for reuse", colours.HUGE_CACHED))
WITHIN = {"huge_cached": ("huge_cached_dirty", "  of these hold memory")}
HOLE = "  of these returned to the kernel"  # out of free blocks, memory not used so far, and ends
ADDRESSES = f"These are addresses; `{NAME} explain` says what is resident."
PAGE = 4096  # what holds memory holds an OS page: less is a mark of the allocator
BETWEEN, BAR_LEAST = 3, 6  # cells between columns; of a bar
MOST_CLASSES, MOST_THREADS = 12, 8


def class_parts(row: ClassRow) -> list[tuple[float, str]]:
    return [(row.live * row.bytes, colours.LIVE), (row.cached * row.bytes, colours.CACHED),
            (row.free * row.bytes, colours.FREE)]


def class_bytes(row: ClassRow) -> int:
    return (row.live + row.cached + row.free) * row.bytes


def busiest_threads(stats: Stats) -> list[ThreadRow]:
    return sorted(stats.threads, key=lambda one: (-one.cached_bytes, one.idle_ms, one.id))


def superslab_bytes(stats: Stats) -> int:
    """Of all superslabs, whether a library counts huge blocks as mapped or not; the parts' sum if it is silent."""
    mapped, huge = stats.bytes.get("mapped", 0), stats.held("huge", "huge_cached")
    parts = stats.held(*(key for key, _, _ in PARTS))
    return mapped - huge if mapped >= parts + huge else mapped or parts


def total_bytes(stats: Stats) -> int:
    return superslab_bytes(stats) + stats.held("huge", "huge_cached", *(key for key, _, _ in ASIDE))


def _known() -> set[str]:
    return {key for key, _, _ in (*PARTS, *HUGE, *ASIDE)} | {key for key, _ in WITHIN.values()} | \
        {"mapped", "in_use", "hole"}


def memory(stats: Stats, width: int) -> RenderableType:
    """Every part with its share, and what they add up to."""
    superslabs, parts = superslab_bytes(stats), stats.held(*(key for key, _, _ in PARTS))
    total = total_bytes(stats)
    rows: list[tuple[list[Text], float, str]] = [([Text(name) for name in ("What", "Key", "Bytes", "Share")], 0, "")]

    def line(text: str, key: str, value: int, colour: str = "", style: str = "") -> None:
        part = "" if style == "dim" else terminal.share(value, total)
        rows.append(([Text(text, style), Text(key), Text(size(value), style), Text(part, style)], value, colour))

    def listed(rows) -> None:
        for key, text, colour in rows:
            if stats.bytes.get(key):
                line(text, key, stats.bytes[key], colour)
            within(*WITHIN.get(key, ("", "")))

    def within(key: str, words: str) -> None:
        if stats.bytes.get(key, 0) >= PAGE:
            line(words, key, stats.bytes[key], style="dim")
    listed(PARTS)
    if superslabs > parts:
        line("ends of slabs, and the like", "", superslabs - parts, colours.META)
    elif superslabs < parts:
        line("counted twice, on its way", "", superslabs - parts)
    line("= superslabs together", "", superslabs, style="bold")
    within("hole", HOLE)
    listed(HUGE)
    listed(ASIDE)
    line("= all together", "", total, style="bold")
    for key in sorted(stats.bytes.keys() - _known()):
        line(terminal.clip(key.replace("_", " "), 34), terminal.clip(key, 17), stats.bytes[key], style="dim")
    return terminal.section("Address space of hakmem", Text(ADDRESSES, "dim"), _table(rows, total, width))


def _table(rows: list[tuple[list[Text], float, str]], total: float, width: int) -> Table:
    """With bars, where figures and words leave room for them."""
    room = min(60, width - sum(max(cells[at].cell_len for cells, _, _ in rows) + BETWEEN for at in range(len(rows[0][0]))))
    found = terminal.table()
    found.padding = (0, 1, 0, 0) if room < BAR_LEAST else (0, 1)  # all words fit 80 columns
    found.add_column("What", no_wrap=True)
    found.add_column("Key", no_wrap=True, style="dim")
    terminal.right(found, "Bytes", "Share")
    if room >= BAR_LEAST:
        found.add_column("", no_wrap=True)
    for cells, value, colour in rows[1:]:
        bar = [terminal.single(value, total, room, colour) if colour else Text("")] if room >= BAR_LEAST else []
        found.add_row(*cells, *bar)
    return found


def classes(stats: Stats, width: int) -> RenderableType:
    rows = sorted((row for row in stats.classes if class_bytes(row)), key=class_bytes, reverse=True)
    if not rows:
        return Text("No class has a block.\n")
    found = terminal.table()
    terminal.right(found, "Size of\na block", "\nSlabs", "Blocks\nheld", "Blocks\ncached", "Blocks\nfree",
                   "Bytes\nof these")
    found.add_column(Text("\n").append_text(class_key(1)), no_wrap=True)
    most, room = class_bytes(rows[0]), max(10, min(60, width - 60))
    for row in rows[:MOST_CLASSES]:
        found.add_row(f"{row.bytes} B", number(row.slabs), number(row.live), number(row.cached), number(row.free),
                      size(class_bytes(row)), scaled(class_parts(row), most, room))
    if len(rows) > MOST_CLASSES:
        left = rows[MOST_CLASSES:]
        found.add_row(f"{len(left)} more", *(number(sum(getattr(row, key) for row in left))
                                             for key in ("slabs", "live", "cached", "free")),
                      size(sum(map(class_bytes, left))), "")
    return terminal.section("Classes with the most bytes", found)


def class_key(gap: int) -> Text:
    return terminal.key(("held", colours.LIVE), ("cached", colours.CACHED), ("free", colours.FREE), gap=" " * gap)


def scaled(parts: list[tuple[float, str]], most: float, room: int) -> Text:
    """A stacked bar as long as its sum, of a column whose longest is `most`; shorter than a cell, too."""
    whole = sum(value for value, _ in parts)
    if most <= 0 or whole / most * room < 1:
        return terminal.single(whole, most, room, max(parts)[1])
    return terminal.bar(parts, whole, round(whole / most * room))


def thread_note(row: ThreadRow) -> str:
    return "" if row.is_attached else "left by a fork" if row.id else "threads without a cache of their own"


def threads(stats: Stats) -> RenderableType:
    rows = busiest_threads(stats)
    if not rows:
        return Text("No thread has a cache.\n")
    found = terminal.table()
    terminal.right(found, "Thread", "Cached bytes", "Idle for")
    found.add_column("")
    for row in rows[:MOST_THREADS]:
        found.add_row(f"{row.id or terminal.NONE}", size(row.cached_bytes),
                      terminal.duration(row.idle_ms / 1000), thread_note(row))
    left = rows[MOST_THREADS:]
    if left:
        found.add_row(f"{len(left)} more", size(sum(row.cached_bytes for row in left)), "", "")
    return terminal.section("Threads with the most in their caches", found)


def _counts(stats: Stats) -> Text:
    parts = [f"{wording.spoken(name)} {number(value)}" for name, value in stats.counts.items()]
    limits = stats.limits
    if limits.get("memory_limit_bytes"):
        parts.append(f"memory limit {size(limits['memory_limit_bytes'])}"
                     + (", tight" if limits.get("memory_is_tight") else ""))
    return Text(" · ".join(parts))


def _caches(stats: Stats) -> Text:
    """How the room of caches and the bytes in them go together."""
    limits = stats.limits
    if not limits.get("cache_budget_bytes"):
        return Text("")
    return Text(f"Bins have room for {size(limits.get('cache_bytes', 0))} more than at first, of the "
                f"{size(limits['cache_budget_bytes'])} all threads may have together (option cache); "
                f"{size(stats.held('cached'))} lie in them now.\n", "dim")


def events(stats: Stats, width: int) -> RenderableType:
    """All events that happened, in as many columns as fit."""
    known = [(wording.spoken(name), terminal.event(name, value)) for name, value in stats.events.items() if value]
    if not known:
        return Text("")
    wide = max(len(name) for name, _ in known) + 2
    columns = max(1, width // (wide + 12))
    found = Table.grid(padding=(0, 2))
    for _ in range(columns):
        found.add_column(no_wrap=True, style="dim")
        found.add_column(justify="right", no_wrap=True)
    high = -(-len(known) // columns)
    for at in range(high):
        cells = [known[at + high * column] for column in range(columns) if at + high * column < len(known)]
        found.add_row(*(text for cell in cells for text in cell))
    return terminal.section("Events since the start", found)


def write(out: Console, stats: Stats, title: str, rss: Optional[int] = None) -> None:
    out.print(Text.assemble((title, "bold"), f"  RSS {size(rss)}  hakmem {stats.version or terminal.NONE}"))
    out.print(_counts(stats))
    out.print()
    for part in (memory(stats, out.width), classes(stats, out.width), threads(stats), _caches(stats)):
        out.print(part)
    out.print(events(stats, out.width))


def write_processes(out: Console, listed: list[Listed]) -> None:
    if not listed:
        out.print(plain.nobody(), soft_wrap=True)
        return
    found = terminal.table()
    terminal.right(found, "PID", "RSS")
    room = out.width // 3 if any(one.reason for one in listed) else out.width - 36
    found.add_column("Command", overflow="ellipsis", no_wrap=True, max_width=max(12, room))
    found.add_column("hakmem")
    for one in listed:
        found.add_row(f"{one.pid}", size(process.rss(one.pid)), Text(process.command(one.pid)),
                      Text(one.version or plain.reason(one), "" if one.version else "dim"))
    out.print(found)
