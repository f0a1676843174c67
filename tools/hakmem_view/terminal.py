# SPDX-License-Identifier: MIT
"""What all tables on the terminal have alike: the console, numbers, bars."""
from __future__ import annotations

import codecs
import sys

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from . import colours

NONE = "–"
EIGHTHS = " ▏▎▍▌▋▊▉"
COUNTS = ((1e15, 1e15, "P"), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from, unit
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
ASCII = str.maketrans("▏▎▍▌▋▊▉█▁▂▃▄▅▆▇▓░▕–…×·─━\u00a0", "|||=+###.,:-=+*&.|-~x.-- ")


def _ascii(error: UnicodeError) -> tuple[str, int]:
    """What an encoding does not know, by signs that every one knows."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start:error.end].translate(ASCII)
    return "".join(letter if letter.isascii() else "?" for letter in text), error.end


def any_encoding() -> None:
    codecs.register_error("hakmem", _ascii)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="hakmem")


class Look:
    """How bars look: whole cells in colours, or letters where there are none."""

    has_colours = True


def console() -> Console:
    out = Console(highlight=False)
    Look.has_colours = out.color_system not in (None, "standard", "windows")  # 16 are too few
    return out


def block(style: str, letters: dict[str, str] = colours.LETTERS) -> str:
    """A full cell of a bar or of a legend."""
    return "█" if Look.has_colours else letters.get(style, "#")


def key(*entries: tuple[str, str], gap: str = "  ") -> Text:
    """What the colours, or the letters, of bars mean."""
    return Text(gap).join(Text.assemble((f"{block(colour)} ", colour), name) for name, colour in entries)


def lines(entries: list[Text], width: int, gap: int = 3) -> list[Text]:
    """Entries side by side, in as many lines as it takes."""
    found = [Text(no_wrap=True)]
    for entry in entries:
        if found[-1].cell_len and found[-1].cell_len + gap + entry.cell_len > width:
            found.append(Text(no_wrap=True))
        found[-1].append(" " * gap if found[-1].cell_len else "").append_text(entry)
    return found


def count(value: int, noun: str) -> str:
    """One superslab, two superslabs."""
    return f"{number(value)} {noun}{'' if value == 1 else 's' if noun[-1] != 's' else 'es'}"


def size(value: float | None) -> str:
    """Bytes with three significant digits."""
    if value is None:
        return NONE
    sign, value, unit = "-" if value < 0 else "", abs(value), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{sign}{_digits(value) if unit else f'{value:.0f}'} {UNITS[unit]}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def number(value: float | None) -> str:
    """A count, short."""
    if value is None:
        return NONE
    for bound, factor, sign in COUNTS:
        if abs(value) >= bound:
            return f"{_digits(value / factor)} {sign}"
    return f"{value:.0f}" if value == int(value) or value >= 99.95 else _digits(value)


def share(part: float, whole: float) -> str:
    """In percent."""
    if whole <= 0:
        return NONE
    found = 100 * part / whole
    if 0 < found < 0.05:
        return "<0.1 %"
    return f"{found:.0f} %" if found >= 9.95 or found == 0 else f"{found:.1f} %"


def event(name: str, value: float) -> str:
    """A counter of events, or of bytes."""
    return size(value) if name.endswith("bytes") else number(value)


def percent(part: float) -> str:
    """Of one, without decimals."""
    return f"{100 * part:.0f} %"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60:02d} s"
    if minutes < 2880:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"


def keep_time(milliseconds: int) -> str:
    """As the library writes it: in seconds."""
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:max(0, most - 1)] + "…"


def bar(parts: list[tuple[float, str]], whole: float, width: int) -> Text:
    """Parts of a whole side by side, each in its style; whole cells, so that neighbours touch."""
    text, done, at = Text(no_wrap=True), 0.0, 0
    for value, style in parts:
        done += max(0.0, value)
        end = min(width, round(done / whole * width)) if whole > 0 else 0
        if end == at and value > 0 and at < width and value / max(whole, 1) * width >= 0.3:
            end += 1  # small, but there
        text.append(block(style) * (end - at), style)
        at = max(at, end)
    text.append("░" * (width - at), "grey50")
    return text


def single(value: float, whole: float, width: int, style: str) -> Text:
    """One bar, to an eighth of a cell."""
    eighths = min(width * 8, round(max(0.0, value) / whole * width * 8)) if whole > 0 else 0
    text = "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
    return Text(text.ljust(width), style, no_wrap=True)


def table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)


def section(title: str, *content: RenderableType) -> Group:
    """What stands under a heading, and an empty line."""
    return Group(Text(title, "bold"), *content, Text(""))


def right(found: Table, *names: str) -> None:
    for name in names:
        found.add_column(name, justify="right", no_wrap=True)
