# SPDX-License-Identifier: MIT
"""What all figures have alike: font, colours of paper and axes, escaped texts."""
from __future__ import annotations

import html

from . import palette, wording

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Helvetica, Arial, sans-serif"


def escape(text: str) -> str:
    return html.escape(text, quote=False)


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most - 1] + "…"


def layout(**more) -> dict:
    base = {"template": "none", "font": {"family": FONT, "size": 13, "color": palette.INK},
            "paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "separators": "." + wording.THIN,
            "hoverlabel": {"font": {"family": FONT, "size": 13}}}
    return {**base, **more}


def axis(title: str, **more) -> dict:
    return {"title": {"text": title, "standoff": 12, "font": {"size": 13}}, "gridcolor": palette.GRID,
            "linecolor": palette.MUTED, "tickcolor": palette.MUTED, "zeroline": False, "ticks": "outside",
            "showline": True, **more}
