# SPDX-License-Identifier: MIT
"""Heat maps of a run: rows × allocators, ratios to the row's best, on a logarithmic scale of colours that ends at 2.

Axes are numbered, so that two arms with one label stay two.
"""
from __future__ import annotations

import math
import re
from typing import Callable, Optional

import plotly.graph_objects as go

from . import palette, wording
from .model import ArmInfo, Cell, RowSummary, RunSummary
from .sheet import clip, escape, layout

CAP = 2.0  # of the heat maps' colours
DARK = math.log2(1.83)  # from here on a heat map's cell needs light text
SCALE = ((0.0, "#8fd1b3"), (0.14, "#d6ecc9"), (0.32, "#fdf0bd"), (0.58, "#f7b267"), (0.8, "#e2703a"),
         (1.0, "#a61c28"))


class _Grid:
    """Rows × arms as plotly wants them: colour, text and hover text; a second layer for what has no figure."""

    def __init__(self, summary: RunSummary, arms: list[ArmInfo], names: dict[str, str]):
        self.summary, self.arms, self.names = summary, arms, names
        self.colour: list[list[Optional[float]]] = []
        self.flat: list[list[Optional[float]]] = []
        self.text: list[list[str]] = []
        self.hover: list[list[str]] = []

    def add(self, values: list[Optional[float]], hovers: list[str], marks: list[str]) -> None:
        """One row; a mark stands where there is no value."""
        known = [wording.known(value) for value in values]
        self.colour.append([math.log2(min(max(value, 1.0), CAP)) if good else None
                            for value, good in zip(values, known)])
        self.flat.append([None if good else float(mark == wording.FAILED) for good, mark in zip(known, marks)])
        self.text.append([wording.ratio(value) if good else mark for value, good, mark in zip(values, known, marks)])
        self.hover.append(hovers)

    def add_row(self, row: RowSummary, pick: Callable[[Cell], Optional[float]], say: Callable[[Cell], str]) -> None:
        cells = [row.cells.get(arm.name) for arm in self.arms]
        hovers = []
        for arm, cell in zip(self.arms, cells):
            what = "took no part" if cell is None else "failed: " + cell.failure if cell.failure else say(cell)
            hovers.append(f"{escape(row.row.id)}<br><b>{escape(self.names[arm.name])}</b><br>{escape(what)}")
        self.add([pick(cell) if cell and not cell.failure else None for cell in cells], hovers,
                 [wording.FAILED if cell and cell.failure else wording.NONE for cell in cells])

    def _texts(self) -> go.Scatter:
        """The cells' texts, light on dark cells. (A heat map's own texts have one colour.)"""
        places = [(x, y) for y, line in enumerate(self.text) for x in range(len(line))]
        dark = [(self.colour[y][x] or 0) > DARK for x, y in places]
        return go.Scatter(x=[x for x, _ in places], y=[y for _, y in places], mode="text", hoverinfo="skip",
                          text=[self.text[y][x] for x, y in places], showlegend=False, cliponaxis=False,
                          textfont={"size": 13, "color": ["#ffffff" if one else palette.INK for one in dark]})

    def traces(self) -> list:
        common = {"hovertext": self.hover, "hoverinfo": "text", "xgap": 2, "ygap": 2}
        ticks = [1, 1.1, 1.25, 1.5, 2]
        bar = {"tickvals": [math.log2(tick) for tick in ticks], "len": 1, "thickness": 14, "outlinewidth": 0,
               "ticktext": [f"{tick:.2f}" for tick in ticks[:-1]] + ["≥ 2"]}
        return [go.Heatmap(z=self.colour, zmin=0, zmax=math.log2(CAP), colorscale=SCALE, colorbar=bar, **common),
                go.Heatmap(z=self.flat, zmin=0, zmax=1, colorscale=((0, "#f3f4f6"), (1, "#d9c6e4")), showscale=False,
                           **common),
                self._texts()]


def _heat(summary: RunSummary, caption: str, mean: str, pick, say) -> go.Figure:
    arms, names = palette.shown(summary), wording.labels(summary)
    grid = _Grid(summary, arms, names)
    for row in summary.ranked:
        grid.add_row(row, pick, say(row))
    means = {one.name: one for one in summary.means}
    last = [getattr(means[arm.name], mean) if arm.name in means else None for arm in arms]
    grid.add(last, [f"<b>{escape(names[arm.name])}</b><br>geometric mean" for arm in arms],
             [wording.NONE] * len(arms))
    labels = [escape(clip(row.row.id, 40)) + wording.marks(row) for row in summary.ranked]
    labels.append("<b>geometric mean</b>")
    columns = [_column(names[arm.name], arm.name == summary.subject) for arm in arms]
    tall = 24 * len(labels)
    longest = max([14] + [min(len(row.row.id), 40) + 4 for row in summary.ranked])
    lines = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at,
              "line": {"color": palette.MUTED, "width": 1}} for at in _borders(summary)]
    edges = {"l": 16 + 8 * longest, "r": 86, "t": 62, "b": 10}
    return go.Figure(grid.traces(), layout(
        height=tall + edges["t"] + edges["b"], margin=edges, shapes=lines,
        meta={"width": edges["l"] + edges["r"] + max(70 * len(arms), 300), "caption": caption},
        xaxis={"side": "top", "tickvals": list(range(len(arms))), "ticktext": columns, "showgrid": False,
               "zeroline": False, "range": [-0.5, len(arms) - 0.5], "tickangle": 0, "fixedrange": True},
        yaxis={"tickvals": list(range(len(labels))), "ticktext": labels, "showgrid": False, "zeroline": False,
               "range": [len(labels) - 0.5, -0.5], "fixedrange": True}))


def _borders(summary: RunSummary) -> list[float]:
    """Between groups of rows, and before the line of means."""
    groups = [row.row.group for row in summary.ranked]
    return [at - 0.5 for at in range(1, len(groups)) if groups[at] != groups[at - 1]] + [len(groups) - 0.5]


def _column(name: str, bold: bool) -> str:
    """A label over a narrow column: at most three lines."""
    lines: list[str] = []
    for word in re.split(r"[ ]+|(?<=[+_,])", name):
        if lines and len(lines[-1]) + len(word) < 9:
            lines[-1] += (" " if not lines[-1].endswith(("+", "_", ",")) else "") + word
        else:
            lines.append(word)
    if len(lines) > 3:
        lines[2] += "…"
    kept = [clip(line, 11) for line in lines[:3]]
    text = "<br>".join(escape(line) for line in kept)
    return f"<b>{text}</b>" if bold else text


def heat_time(summary: RunSummary) -> go.Figure:
    """Time, ratio to the row's best."""
    return _heat(summary, "Time, ratio to the row's best allocator", "time_mean", lambda cell: cell.time_ratio,
                 lambda row: lambda cell: f"{wording.short(cell.time)} {row.row.unit}")


def heat_peak(summary: RunSummary) -> go.Figure:
    """Highest RSS, ratio to the row's smallest."""
    return _heat(summary, "Peak memory (RSS), ratio to the row's smallest", "peak_mean", lambda cell: cell.peak_ratio,
                 lambda row: lambda cell: wording.memory(cell.peak_kib))
