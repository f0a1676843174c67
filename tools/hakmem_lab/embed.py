# SPDX-License-Identifier: MIT
"""Data inside HTML pages: JSON that no browser can mistake for markup, and the figures with their library."""
from __future__ import annotations

import base64
import dataclasses
import functools
import gzip
import json
import math
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from .figures import thin
from .model import RunSummary


def _plain(value: Any) -> Any:
    """JSON knows no NaN and no infinity: they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def to_json(value: Any) -> Markup:
    """For <script type="application/json">: without <, > and &, which could end or open something."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def figures_json(figures: dict[str, go.Figure]) -> Markup:
    return to_json({key: figure.to_plotly_json() for key, figure in figures.items()})


def data_json(summary: RunSummary) -> Markup:
    """The whole summary; curves thinned out as in the figures."""
    data = dataclasses.asdict(summary)
    for row in data["rows"]:
        for cell in row["cells"].values():
            cell["curve"] = thin(cell["curve"])
    return to_json(data)


def asset(name: str) -> Markup:
    """A style or script of ours, to be put into a page as it is."""
    return Markup((Path(__file__).resolve().parent / "templates" / name).read_text(encoding="utf-8"))


@functools.cache
def packed_library() -> Markup:
    """plotly.js for a page that is kept: two fifths of its size. report.js unpacks it in the browser."""
    return Markup(base64.b64encode(gzip.compress(library().encode(), 9, mtime=0)).decode("ascii"))


def library() -> Markup:
    """plotly.js as it comes with the Python package."""
    text = get_plotlyjs()
    if "</script" in text.lower():
        raise ValueError("plotly.js has a closing tag in it")
    return Markup(text)
