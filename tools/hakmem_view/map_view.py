# SPDX-License-Identifier: MIT
"""`./hakmem map`: a page, a PNG, or rows of letters on the terminal."""
from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from . import colours, learner_view, page, picture, terminal
from .model import HISTOGRAM, Explain, Map, Span, Superslab
from .terminal import number, percent, size

FILL = " ▁▂▃▄▅▆▇█"
KINDS = {"large": ("▓", colours.LARGE), "dirty": ("░", colours.DIRTY), "clean": ("·", colours.MUTED)}
TEXT_ROWS, TEXT_BARS = 32, 12  # superslabs and huge blocks on the terminal
PNG_ROWS = 120


def html(heap: Map, title: str, explained: Explain | None = None) -> str:
    """With what the learner decided, if the process was asked why its memory is what it is."""
    drawn, _ = picture.draw(heap, title)
    from markupsafe import Markup  # comes with jinja2, which the picture has asked for
    return page.render("map.html.j2", found=heap, title=title, summary=picture.summary(heap), picture=Markup(drawn),
                       about=picture.about(heap), classes=heap.classes, size=size, learner=learner_view,
                       learners=learner_view.shown(explained) if explained else [])


def svg(heap: Map, title: str) -> str:
    return picture.draw(heap, title, rows=PNG_ROWS, is_alone=True)[0]


def write_png(heap: Map, title: str, path: Path) -> None:
    drawn, geometry = picture.draw(heap, title, rows=PNG_ROWS, is_alone=True)
    page.shoot(drawn, path, geometry.width, geometry.height)


def _letter(span: Span) -> tuple[str, str]:
    if not span.is_slab:
        return KINDS.get(span.kind, ("?", colours.OTHER))
    group, step = colours.group(span.bytes), round(span.occupancy * (len(FILL) - 1))
    letter = FILL[max(1, step)] if terminal.Look.has_colours else colours.group_letter(group, step >= len(FILL) // 2)
    return letter if span.live else " ", colours.GROUPS[group][1]


def _units(superslab: Superslab, units: int) -> Text:
    """A letter per unit; an empty slab is told from nothing by its first unit."""
    cells: list[tuple[str, str]] = [(" ", "")] * units
    for span in superslab.spans:
        letter, colour = _letter(span)
        cells[span.unit:span.unit + span.units] = [(letter, colour)] * span.units
        if letter == " ":
            cells[span.unit] = ("_", colour)
    text = Text(no_wrap=True)
    for letter, colour in cells:
        text.append(letter, colour)
    return text


def _legend(heap: Map) -> list[Text]:
    """Of what there is."""
    has_colours, found = terminal.Look.has_colours, []
    for at in sorted({colours.group(one.bytes) for one in heap.classes}):
        letter = "█" if has_colours else colours.group_letter(at)
        found.append(Text.assemble((f"{letter} ", colours.GROUPS[at][1]), colours.group_name(at)))
    for kind, (letter, colour) in KINDS.items():
        if any(superslab.units(kind) for superslab in heap.superslabs):
            found.append(Text.assemble((f"{letter} ", colour), picture.kind_name(kind)))
    if any(not span.live for superslab in heap.superslabs for span in superslab.slabs):
        found.append(Text("_ empty slab"))
    if heap.classes:
        found.append(Text("higher: more of the slab in use" if has_colours else
                          "capital: half of the slab or more in use", "dim"))
    return found


def _superslabs(out: Console, heap: Map) -> None:
    shown = picture.chosen(heap, TEXT_ROWS)
    wide = max((len(superslab.base) for superslab in shown), default=0)
    has_room = out.width >= wide + heap.units + 30
    for superslab, more in picture.folded(shown):
        line = Text(no_wrap=True).append(f"{superslab.base.removeprefix('0x'):>{max(0, wide - 2)}} ", "dim")
        line.append_text(_units(superslab, heap.units))
        if has_room:
            slabs = terminal.count(len(superslab.slabs), "slab")
            line.append(f"  {slabs:>8}, {size(superslab.free_bytes):>8} free in them", "dim")
        out.print(line, overflow="crop", no_wrap=True)
        if more:
            out.print(Text(f"{'':{max(1, wide - 1)}}… {more} more like it", "dim"))
    left = len(heap.superslabs) - len(shown)
    if left:
        out.print(Text(f"{terminal.count(left, 'more superslab')} with less free room in their slabs; "
                       "--html FILE shows them", "dim"))


def _classes(out: Console, heap: Map) -> None:
    found = terminal.table()
    terminal.right(found, "Size of\na block", "\nSlabs", "Bytes\nof slabs", "Blocks\nthey hold", "Blocks\nin use",
                   "\nFull")
    found.add_column("Slabs by fullness\n▕0 … 100 %▏", no_wrap=True)
    for one in heap.classes:
        most = max(one.histogram)
        bars = "".join(FILL[max(1, round(count / most * 8))] if count else " " for count in one.histogram)
        found.add_row(f"{one.bytes} B", number(one.slabs), size(one.units * heap.unit_bytes), number(one.capacity),
                      number(one.live), percent(one.occupancy),
                      Text.assemble("▕", (bars.ljust(HISTOGRAM), colours.GROUPS[colours.group(one.bytes)][1]), "▏"))
    out.print(terminal.section("Classes", found))


def _huge(out: Console, heap: Map) -> None:
    ranked = sorted(heap.huge, key=lambda one: -one.bytes)
    most, room = max(1, ranked[0].bytes), max(10, min(80, out.width - 50))
    out.print(Text.assemble(("Huge blocks, to scale", "bold"), (f"  full bar: {size(most)}", "dim")))
    for one in ranked[:TEXT_BARS]:
        colour = colours.HUGE if one.kind == "huge" else colours.HUGE_CACHED
        out.print(Text.assemble((f"{one.base:<16} ", "dim"), terminal.single(one.bytes, most, room, colour),
                                f" {size(one.bytes)}{', kept for reuse' if one.kind == 'cached' else ''}"),
                  no_wrap=True, overflow="crop")
    if len(ranked) > TEXT_BARS:
        left = ranked[TEXT_BARS:]
        out.print(Text(f"{len(left)} more, {size(sum(one.bytes for one in left))} together", "dim"))


def write(out: Console, heap: Map, title: str) -> None:
    out.print(Text.assemble((title, "bold"), f"  {picture.about(heap)}"))
    out.print(Text(picture.summary(heap)))
    for line in terminal.lines(_legend(heap), out.width):
        out.print(line)
    _superslabs(out, heap)
    out.print()
    if heap.classes:
        _classes(out, heap)
    if heap.huge:
        _huge(out, heap)
