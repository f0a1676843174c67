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
from .wording import (NONE, clip, count, duration, event, keep_time, number, percent, share,  # noqa: F401
                      size)  # so that views find all in one place

EIGHTHS = " ▏▎▍▌▋▊▉"
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
    Look.has_colours = not out.no_color and out.color_system not in (None, "standard", "windows")  # 16 are too few
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
