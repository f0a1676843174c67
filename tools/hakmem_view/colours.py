# SPDX-License-Identifier: MIT
"""One fixed colour per kind of memory and per group of size classes, the same on the terminal and in pictures.

Told apart with colour-blindness as far as a dozen can be (Okabe and Ito, Tol); names, hatching and hover text say it
again. Paper and ink are the lab's.
"""
from __future__ import annotations

from hakmem_lab.palette import GRID, INK, MUTED

LIVE, CACHED, FREE, DIRTY, CLEAN, META = "#0072b2", "#009e73", "#e69f00", "#cc79a7", "#c9ced8", "#8a8fa0"
UNCARVED, OTHER, OTHERS = "#e8cf8a", "#999933", "#b8bcc8"
CAUSES = {
    "live": LIVE, "slack": "#56b4e9", "slab_free": FREE, "uncarved": UNCARVED, "bins": CACHED, "remote": "#66c2a5",
    "retained_dirty": DIRTY, "retained_clean": "#e3bfd3", "huge_page_padding": "#882255", "metadata": META,
    "guard": "#6a5acd", "others": OTHERS,
}
TAKEN, HELD = "#d55e00", DIRTY  # the two parts of a keep time's price
LARGE, HUGE, HUGE_CACHED, MARK = "#9aa0ab", "#54627d", DIRTY, "#e8000b"

GROUPS = (  # blocks up to so many bytes, colour: from cold to warm, none of them a colour from above
    (64, "#5b3fa8"), (128, "#3d72d6"), (256, "#35a7c4"), (512, "#3aa66a"), (1024, "#8cae2e"), (4096, "#d4ab1c"),
    (16384, "#dd7420"), (0, "#a03a22"),
)
LETTERS = {LIVE: "h", CACHED: "c", FREE: "f", UNCARVED: "u", DIRTY: "r", META: "m", OTHERS: "o"}  # without colour


def cause(name: str) -> str:
    return CAUSES.get(name, OTHER)


def group(block_bytes: int) -> int:
    """The number of the group a class belongs to."""
    return next(at for at, (most, _) in enumerate(GROUPS) if block_bytes <= most or not most)


def group_name(at: int) -> str:
    def short(value: int) -> str:
        return f"{value} B" if value < 1024 else f"{value // 1024} KiB"
    most = GROUPS[at][0]
    return f"blocks up to {short(most)}" if most else f"blocks over {short(GROUPS[at - 1][0])}"


def group_letter(at: int, is_capital: bool = False) -> str:
    """For those who see no colours."""
    return "ABCDEFGHIJ"[at] if is_capital else "abcdefghij"[at]


__all__ = ["CACHED", "CAUSES", "CLEAN", "DIRTY", "FREE", "GRID", "GROUPS", "HELD", "HUGE", "HUGE_CACHED", "INK", "LARGE",
           "LETTERS", "LIVE", "MARK", "META", "MUTED", "OTHER", "OTHERS", "TAKEN", "UNCARVED", "cause", "group",
           "group_letter", "group_name"]
