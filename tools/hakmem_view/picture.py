# SPDX-License-Identifier: MIT
"""The picture of a map as SVG: a row per superslab, a cell per slab over its units, huge blocks as bars to scale.

All geometry is here, in pixels; templates/map.svg.j2 only writes it down. What is drawn is bounded (CELLS, ROWS, GRID,
BARS), so that the page of 2 000 superslabs has a few megabytes: of too many superslabs those with most room in their
slabs are drawn cell by cell, and all of them in an overview with one cell for each.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from . import colours, page
from .model import Huge, Map, Span, Superslab
from .wording import count, percent, share, size

CELLS, ROWS, GRID, BARS = 12_000, 400, 4_000, 60  # cells, superslabs in detail, cells of the overview, huge blocks
OVERVIEW_FROM = 33  # superslabs: fewer are seen at a glance anyway
LEFT, CELL, PITCH, HEIGHT, GAP, LINE, TITLES = 120, 13, 20, 14, 10, 20, 70
LETTER = 7  # pixels of one, at most on average
SQUARE, BAR_WIDTH = 11, 620
HUGE_PAGE = 2 << 20
KIND_NAMES = {"large": "large blocks", "clean": "unused, without memory", "dirty": "unused, hold memory",
              "huge": "huge blocks", "cached": "huge blocks kept for reuse"}
TONES = (("tone-live", "solid: in use (caches included)"), ("tone-carved", "half tone: free"),
         ("tone-bare", "pale: never used"))


@dataclass
class Cell:
    """A span: the whole of it pale, what is carved in half tone, what is in use solid."""

    x: float
    width: float
    look: str  # class of the style: g0 … for groups of size classes, or the kind
    title: str
    carved: float = 0.0  # heights
    live: float = 0.0


@dataclass
class Row:
    y: float
    label: str
    value: str
    title: str
    cells: list[Cell] = field(default_factory=list)
    marks: list[tuple[float, float]] = field(default_factory=list)  # ranges backed for huge pages


@dataclass
class Square:
    x: float
    y: float
    look: str
    carved: float  # heights
    live: float
    title: str


@dataclass
class Bar:
    y: float
    width: float
    look: str
    label: str
    value: str


@dataclass
class Picture:
    width: int = 0
    height: int = 0
    rows: list[Row] = field(default_factory=list)
    ticks: list[tuple[float, int]] = field(default_factory=list)
    legend: list[tuple[float, float, str, str]] = field(default_factory=list)  # x, y, look, text
    squares: list[Square] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)  # what is left out, by part
    tops: dict[str, float] = field(default_factory=dict)  # of headings, by part


def kind_name(kind: str) -> str:
    return KIND_NAMES.get(kind, kind)


def chosen(heap: Map, rows: int = ROWS, cells: int = CELLS) -> list[Superslab]:
    """The superslabs that are drawn cell by cell, in their order: those with most room in their slabs."""
    ranked = sorted(range(len(heap.superslabs)), key=lambda at: -heap.superslabs[at].free_bytes)
    kept, left = [], cells
    for at in ranked:
        left -= max(1, len(heap.superslabs[at].spans))
        if left < 0 or len(kept) == rows:
            break
        kept.append(at)
    return [heap.superslabs[at] for at in sorted(kept)]


def folded(superslabs: list[Superslab]) -> list[tuple[Superslab, int]]:
    """Neighbours that look the same are one row: it, and how many more there are."""
    found: list[tuple[Superslab, int]] = []
    for one in superslabs:
        if found and found[-1][0].like(one):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((one, 0))
    return found


def look(span: Span) -> str:
    if span.is_slab:
        return f"g{colours.group(span.bytes)}"
    return span.kind if span.kind in ("large", "clean", "dirty") else "other"


def span_title(span: Span) -> str:
    place = f"unit {span.unit} (64 KiB)" if span.units == 1 else f"units {span.unit}–{span.unit + span.units - 1} (64 KiB each)"
    if not span.is_slab:
        return f"{place}: {kind_name(span.kind)}"
    text = f"{place}: {span.bytes} B, {span.live} of {span.capacity} in use ({share(span.live, span.capacity)})"
    return text + (f", {span.blocks} ever handed out" if span.blocks < span.capacity else "")


def occupancy(*superslabs: Superslab) -> float:
    """The share in use of the bytes of their slabs."""
    room = sum(span.capacity * span.bytes for one in superslabs for span in one.slabs)
    return (room - sum(one.free_bytes for one in superslabs)) / room if room > 0 else 0.0


def carved(*superslabs: Superslab) -> float:
    """The share that was made into blocks."""
    room = sum(span.capacity * span.bytes for one in superslabs for span in one.slabs)
    made = sum(min(span.blocks, span.capacity) * span.bytes for one in superslabs for span in one.slabs)
    return made / room if room > 0 else 0.0


def superslab_title(superslab: Superslab, heap: Map) -> str:
    unit = heap.unit_bytes
    parts = [count(len(superslab.slabs), "slab"),
             f"{percent(occupancy(superslab))} of their bytes in use" if superslab.slabs else "",
             *(f"{kind_name(kind)} {size(superslab.units(kind) * unit)}" for kind in ("large", "dirty", "clean")
               if superslab.units(kind))]
    return f"{superslab.base}: " + ", ".join(part for part in parts if part)


def _value(superslab: Superslab, more: int) -> str:
    """What stands at the end of its row."""
    value = f"{percent(occupancy(superslab))} in use" if superslab.slabs else "no slab"
    return value + (f", {more} more" if more else "")


def _row(superslab: Superslab, more: int, heap: Map, y: float) -> Row:
    row = Row(y, superslab.base, _value(superslab, more), superslab_title(superslab, heap)
              + (f"; the next {more} look the same" if more else ""))
    for span in superslab.spans:
        cell = Cell(LEFT + span.unit * CELL, span.units * CELL - 1, look(span), span_title(span))
        if span.is_slab:
            cell.carved, cell.live = round(span.carved * HEIGHT, 1), round(span.occupancy * HEIGHT, 1)
            if span.live and cell.live < 1:
                cell.live = 1  # one block is to be seen
        row.cells.append(cell)
    range_units = max(1, HUGE_PAGE // max(1, heap.unit_bytes))
    for at in range(-(-heap.units // range_units)):
        if superslab.huge_pages >> at & 1:
            width = min(range_units, heap.units - at * range_units) * CELL - 1
            row.marks.append((LEFT + at * range_units * CELL, width))
    return row


def _legend(heap: Map, width: int) -> list[tuple[str, str]]:
    used = sorted({colours.group(one.bytes) for one in heap.classes})
    found = list(TONES) if used else []
    found += [(f"g{at}", colours.group_name(at)) for at in used]
    kinds = {span.kind for superslab in heap.superslabs for span in superslab.spans if not span.is_slab}
    found += [(kind, kind_name(kind)) for kind in ("large", "dirty", "clean") if kind in kinds]
    if kinds - {"large", "dirty", "clean"}:
        found.append(("other", "other"))
    if any(superslab.huge_pages for superslab in heap.superslabs):
        found.append(("mark", "line below: backed by huge pages"))
    found += [(kind, kind_name(kind)) for kind in ("huge", "cached") if any(one.kind == kind for one in heap.huge)]
    return found


def _place_legend(picture: Picture, heap: Map, y: float) -> float:
    x = 16.0
    for name, text in _legend(heap, picture.width):
        wide = 34 + 6.6 * len(text)
        if x + wide > picture.width:
            x, y = 16.0, y + LINE
        picture.legend.append((x, y, name, text))
        x += wide
    return y + LINE + 10


def _dominant(members: list[Superslab]) -> str:
    """What most of their units are."""
    units: dict[str, int] = {}
    for superslab in members:
        for span in superslab.spans:
            units[look(span)] = units.get(look(span), 0) + span.units
    return max(units, key=lambda name: units[name]) if units else "clean"


def _overview(picture: Picture, heap: Map, y: float) -> float:
    """A square per superslab; of very many superslabs, per few neighbours."""
    each = -(-len(heap.superslabs) // GRID)
    across = (picture.width - 32) // (SQUARE + 2)
    groups = [heap.superslabs[at:at + each] for at in range(0, len(heap.superslabs), each)]
    for at, members in enumerate(groups):
        live = occupancy(*members)
        name = _dominant(members)
        title = superslab_title(members[0], heap) if each == 1 else \
            f"{len(members)} superslabs from {members[0].base}: {percent(live)} of the bytes of their slabs in use"
        is_slabs = name.startswith("g")
        picture.squares.append(Square(16 + at % across * (SQUARE + 2), y + at // across * (SQUARE + 2), name,
                                      round(carved(*members) * SQUARE, 1) if is_slabs else 0.0,
                                      round(live * SQUARE, 1) if is_slabs else SQUARE, title))
    picture.notes["overview"] = "a cell each" if each == 1 else f"a cell for {each} neighbours"
    return y + (-(-len(groups) // across)) * (SQUARE + 2) + 14


def _bars(picture: Picture, huge: list[Huge], y: float) -> float:
    ranked = sorted(huge, key=lambda one: -one.bytes)
    most = max(1, ranked[0].bytes)
    for one in ranked[:BARS]:
        picture.bars.append(Bar(y, max(1.0, max(0, one.bytes) / most * BAR_WIDTH),
                                "huge" if one.kind == "huge" else "cached" if one.kind == "cached" else "other",
                                one.base, f"{size(one.bytes)}{', kept for reuse' if one.kind == 'cached' else ''}"))
        y += PITCH
    left = ranked[BARS:]
    if left:
        picture.notes["huge"] = f"{len(left)} smaller ones, " \
            f"{size(sum(one.bytes for one in left))} together, are not drawn"
        y += LINE
    return y + 10


def lay_out(heap: Map, rows: int = ROWS, cells: int = CELLS, top: float = TITLES) -> Picture:
    """`top`: room for titles above."""
    title = 32 + round(6.6 * len(summary(heap))) if top == TITLES else 0
    detailed = chosen(heap, rows, cells)
    right = 2 * GAP + LETTER * max((len(_value(*one)) for one in folded(detailed)), default=0)
    picture = Picture(width=max(LEFT + heap.units * CELL + right, 700, title))
    y = _place_legend(picture, heap, top)
    if len(heap.superslabs) >= OVERVIEW_FROM:
        picture.tops["overview"] = y + 14
        y = _overview(picture, heap, y + 24)
    if len(detailed) < len(heap.superslabs):
        picture.notes["rows"] = f"; the {len(detailed)} of {len(heap.superslabs)} with most free room in their slabs"
    picture.tops["rows"] = y + 14
    y += 40
    picture.ticks = [(LEFT + at * CELL, at) for at in range(0, heap.units, 8)]
    picture.tops["ticks"] = y - 6
    for superslab, more in folded(detailed):
        picture.rows.append(_row(superslab, more, heap, y))
        y += PITCH
    y += 12
    if heap.huge:
        picture.tops["huge"] = y + 14
        y = _bars(picture, heap.huge, y + 24)
    picture.height = math.ceil(y + 6)
    return picture


def draw(heap: Map, title: str, rows: int = ROWS, cells: int = CELLS, is_alone: bool = False) -> tuple[str, Picture]:
    """The SVG's text and its geometry. One that stands alone has a paper of its own and no dark colours."""
    picture = lay_out(heap, rows, cells, TITLES if is_alone else 4)
    return page.render("map.svg.j2", heap=heap, picture=picture, title=title, summary=summary(heap), about=about(heap),
                       geometry=(LEFT, CELL, GAP, HEIGHT, SQUARE), is_alone=is_alone), picture


def about(heap: Map) -> str:
    """Which library, and how much memory the kernel says there is."""
    resident = f", RSS {size(heap.rss_bytes)}" if heap.rss_bytes is not None else ""
    return f"hakmem {heap.version or '–'}{resident}"


def summary(heap: Map) -> str:
    """One sentence about all of it."""
    classes = heap.classes
    capacity = sum(one.capacity * one.bytes for one in classes)
    live = sum(one.live * one.bytes for one in classes)
    units = {kind: sum(one.units(kind) for one in heap.superslabs) * heap.unit_bytes
             for kind in ("large", "dirty", "clean")}
    parts = [count(len(heap.superslabs), "superslab"), f"{count(sum(one.slabs for one in classes), 'slab')} "
             f"with {size(live)} of {size(capacity)} in use (caches included)"]
    parts += [f"{size(value)} {name}" for name, value in
              (("in large blocks", units["large"]), ("unused but holding memory", units["dirty"]),
               ("unused without memory", units["clean"])) if value]
    for kind, words in (("huge", "huge block"), ("cached", "huge block kept for reuse")):
        those = [one.bytes for one in heap.huge if one.kind == kind]
        if those:
            noun, _, rest = words.partition(" kept")
            parts.append(f"{count(len(those), noun)}{' kept' + rest if rest else ''} of {size(sum(those))}")
    return ", ".join(parts) + "."
