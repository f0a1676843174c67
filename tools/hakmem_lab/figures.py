# SPDX-License-Identifier: MIT
"""The figures of a run, for plotly. What they show is in the summary; only places and colours are computed here.

Texts from outside (labels, rows) are escaped: plotly understands a little HTML in texts. Colours, markers and dashes
come from palette.py; the heat maps are in heat.py.
"""
from __future__ import annotations

import math
from typing import Optional

import plotly.graph_objects as go

from . import palette, wording
from .heat import heat_peak, heat_time
from .model import Latency, RowSummary, RunSummary
from .placing import Box, Point, place_labels, ratio_range, ratio_ticks
from .sheet import axis, clip, escape, layout

CURVE_POINTS = 400
SCATTER = (860, 560)  # width and height: labels are placed for this size
EDGES = {"l": 76, "r": 24, "t": 34, "b": 64}


# --- time against memory ---

def _scatter(summary: RunSummary, caption: str, pairs: dict[str, tuple[float, float]],
             hover: dict[str, str]) -> go.Figure:
    looks, width, height = palette.looks(summary), *SCATTER
    names = {name: clip(text, 44) for name, text in wording.labels(summary).items()}
    low_x, high_x = ratio_range(x for x, _ in pairs.values())
    low_y, high_y = ratio_range(y for _, y in pairs.values())
    across, down = width - EDGES["l"] - EDGES["r"], height - EDGES["t"] - EDGES["b"]
    points = [Point(math.log(x / low_x) / math.log(high_x / low_x) * across,
                    down - math.log(y / low_y) / math.log(high_y / low_y) * down,
                    names[arm], looks[arm].size / 2 + 1) for arm, (x, y) in pairs.items()]
    places = place_labels(points, Box(2, 2, across - 2, down - 2))
    notes = []
    for (arm, (x, y)), point, at in zip(pairs.items(), points, places):
        text = f"<b>{escape(names[arm])}</b>" if looks[arm].bold else escape(names[arm])
        notes.append({"x": math.log10(x), "y": math.log10(y), "text": text, "arrowcolor": palette.MUTED,
                      "arrowwidth": 1, "arrowhead": 0, "ax": at.x - point.x, "ay": at.y - point.y,
                      "showarrow": True, "standoff": point.radius, "borderpad": 0, "xanchor": at.anchor,
                      "yanchor": "middle", "font": {"size": 13, "color": palette.INK}})
        if not at.far:
            notes[-1].update(showarrow=False, xshift=at.x - point.x, yshift=point.y - at.y)
    traces = [go.Scatter(x=[x], y=[y], mode="markers", name=escape(names[arm]), hovertext=hover[arm],
                         hoverinfo="text", marker=_marker(looks[arm])) for arm, (x, y) in pairs.items()]
    return go.Figure(traces, layout(
        width=width, height=height, margin=EDGES, showlegend=False, annotations=notes,
        meta={"width": width, "caption": caption},
        xaxis=_ratio_axis("time, ratio to the row's best →", low_x, high_x, across),
        yaxis=_ratio_axis("peak RSS, ratio to the row's smallest →", low_y, high_y, down)))


def _marker(look: palette.Look) -> dict:
    return {"color": look.colour, "symbol": look.symbol, "size": look.size, "line": {"color": "#ffffff", "width": 1}
            if "open" not in look.symbol else {"color": look.colour, "width": 2}}


def _ratio_axis(title: str, low: float, high: float, pixels: float) -> dict:
    ticks = ratio_ticks(low, high, pixels)
    return axis(title, type="log", range=[math.log10(low), math.log10(high)], tickvals=ticks,
                 ticktext=[f"{tick:g}" for tick in ticks], minor={"ticks": ""})


def _hover(name: str, x: float, y: float, more: str = "") -> str:
    return f"<b>{escape(name)}</b><br>time {wording.ratio(x)}, peak RSS {wording.ratio(y)}{more}"


def scatter(summary: RunSummary) -> Optional[go.Figure]:
    """Geometric means of all arms; None if no arm has both."""
    means = {mean.name: mean for mean in summary.means}
    names = wording.labels(summary)
    arms = [arm.name for arm in palette.shown(summary) if arm.kind != "ideal" and arm.name in means
            and wording.known(means[arm.name].time_mean) and wording.known(means[arm.name].peak_mean)]
    pairs = {arm: (means[arm].time_mean, means[arm].peak_mean) for arm in arms}
    hover = {arm: _hover(names[arm], *pairs[arm], f"<br>{wording.count(means[arm].rows, 'row')}") for arm in arms}
    return _scatter(summary, "Time against memory, geometric means over all rows", pairs, hover) if pairs else None


def scatter_row(summary: RunSummary, row: RowSummary) -> Optional[go.Figure]:
    """One row; None if no arm has both time and memory."""
    names = wording.labels(summary)
    pairs, hover = {}, {}
    for arm in palette.shown(summary):
        cell = row.cells.get(arm.name)
        if cell and arm.kind != "ideal" and wording.known(cell.time_ratio) and wording.known(cell.peak_ratio):
            pairs[arm.name] = (cell.time_ratio, cell.peak_ratio)
            hover[arm.name] = _hover(names[arm.name], *pairs[arm.name], f"<br>{wording.short(cell.time)} "
                                     f"{escape(row.row.unit)}, {wording.memory(cell.peak_kib)}")
    return _scatter(summary, f"Time against memory on {row.row.id}", pairs, hover) if pairs else None


# --- memory over time -------------------------------------------------------------------------

def thin(curve: list[tuple[float, float]], most: int = CURVE_POINTS) -> list[tuple[float, float]]:
    """At most that many points: of each stretch its lowest and highest, in their order; first and last stay."""
    if len(curve) <= most:
        return list(curve)
    inner, stretches = curve[1:-1], max(1, (most - 2) // 2)
    kept = [curve[0]]
    for at in range(stretches):
        part = inner[at * len(inner) // stretches:(at + 1) * len(inner) // stretches]
        if part:
            ends = {min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
            kept += sorted(ends)
    return kept + [curve[-1]]


def _alive(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without samples taken when the program had just ended."""
    end = len(points)
    while end > 1 and points[end - 1][1] <= 0:
        end -= 1
    return points[:end]


def curve(summary: RunSummary, row: RowSummary) -> Optional[go.Figure]:
    """RSS over time of the arms on one row; None if nobody was sampled."""
    looks, names = palette.looks(summary), wording.labels(summary)
    traces = []
    for arm in reversed(palette.shown(summary)):  # the subject is drawn last, on top
        cell = row.cells.get(arm.name)
        if cell and cell.curve:
            points = thin(_alive(cell.curve))
            traces.append(_line(looks[arm.name], names[arm.name], x=[round(at, 2) for at, _ in points],
                                y=[round(kib / 1024, 3) for _, kib in points],
                                hovertemplate="%{y:.2f} MiB at %{x:.0f} ms"))
    if not traces:
        return None
    return go.Figure(traces, layout(height=440, margin={"l": 70, "r": 20, "t": 34, "b": 56}, legend=_legend(),
                                     meta={"caption": f"Memory over time on {row.row.id}"},
                                     xaxis=axis("time since start (ms)", rangemode="tozero"),
                                     yaxis=axis("RSS (MiB)", rangemode="tozero", automargin=True)))


def _line(look: palette.Look, name: str, **more) -> go.Scatter:
    text = f"<b>{escape(name)}</b>" if look.bold else escape(name)
    line = {"color": look.colour, "width": look.width, "dash": look.dash}
    return go.Scatter(mode="lines", name=text, line=line, **more)


def _legend() -> dict:
    return {"x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top", "traceorder": "reversed", "font": {"size": 13},
            "itemwidth": 40, "itemclick": "toggle", "itemdoubleclick": "toggleothers"}


# --- latency ----------------------------------------------------------------------------------

def nines(share: float) -> float:
    """A place on the axis of nines: 0.9 → 1, 0.99 → 2, 0.999 → 3."""
    return -math.log10(1 - share)


def percentile_points(found: Latency) -> tuple[list[float], list[float]]:
    """The curve, up to the slowest call: from the histogram, or from the few percentiles if there is none."""
    slowest = found.percentiles.get("max") or max((upper for upper, _ in found.histogram if math.isfinite(upper)),
                                                  default=0.0)
    total = sum(times for _, times in found.histogram)
    if total < 2:
        few = sorted((float(key), value) for key, value in found.percentiles.items() if key != "max" and value > 0)
        return [nines(key / 100) for key, _ in few if key < 100], [value for key, value in few if key < 100]
    xs, ys, seen = [], [], 0
    for upper, times in found.histogram:
        if times > 0:
            seen += times
            xs.append(nines(seen / total) if seen < total else math.log10(total))
            ys.append(min(upper, slowest) if seen < total else slowest)
    return [0.0] + xs, ys[:1] + ys


def latency(summary: RunSummary, row: str) -> Optional[go.Figure]:
    """Percentile curves of one row; None if its latency was not measured."""
    looks, names = palette.looks(summary), wording.labels(summary)
    found = {one.arm: one for one in summary.latency if one.row == row}
    traces, far = [], 1.0
    for arm in reversed(palette.shown(summary)):
        if arm.name in found:
            xs, ys = percentile_points(found[arm.name])
            if ys:
                far = max(far, xs[-1])
                hover = [f"{wording.short(100 - 100 * 10 ** -x)} %: {wording.short(y)} ns" if x < 5 else
                         f"slowest of 10<sup>{x:.1f}</sup>: {wording.short(y)} ns" for x, y in zip(xs, ys)]
                traces.append(_line(looks[arm.name], names[arm.name], x=[round(x, 4) for x in xs], y=ys, text=hover,
                                    hoverinfo="text+name"))
    if not traces:
        return None
    marks = [0.5] + [1 - 10.0 ** -n for n in range(1, math.ceil(far) + 1)]
    texts = ["50 %", "90 %", "99 %"] + [f"99.{'9' * n} %" for n in range(1, 12)]
    return go.Figure(traces, layout(
        height=460, margin={"l": 76, "r": 20, "t": 34, "b": 56}, legend=_legend(),
        meta={"caption": f"Time of single calls on {row}"},
        xaxis=axis("share of calls at most this slow", range=[0, far * 1.02],
                    tickvals=[nines(mark) if mark < 1 else 12 for mark in marks], ticktext=texts[:len(marks)]),
        yaxis=axis("time of one call (ns)", type="log",
                    exponentformat="none", separatethousands=True, dtick=1, minor={"ticks": "outside"},
                    automargin=True)))


# --- all of them ----------------------------------------------------------------------------------

def all_figures(summary: RunSummary) -> dict[str, go.Figure]:
    """Those that have data, by key: heat-time, heat-peak, scatter, and per row N: scatter-N, curve-N, latency-N."""
    figures = {"scatter": scatter(summary)}
    if summary.rows:
        figures = {"heat-time": heat_time(summary), "heat-peak": heat_peak(summary), **figures}
    for at, row in enumerate(summary.rows):
        figures[f"scatter-{at}"] = scatter_row(summary, row)
        figures[f"curve-{at}"] = curve(summary, row)
        figures[f"latency-{at}"] = latency(summary, row.row.id)
    return {key: figure for key, figure in figures.items() if figure is not None}
