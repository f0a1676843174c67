# SPDX-License-Identifier: MIT
"""README's picture as SVG: time against memory, and bars of both per kind of work. The same run gives the same bytes.

All geometry is here, in pixels; templates/picture.svg.j2 only writes it down.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import jinja2

from . import palette, wording
from .means import Mean, Means, means
from .model import RunSummary
from .placing import Box, Point, place_labels, ratio_range, ratio_ticks
from .sheet import clip

WIDTH = 900
AREA = Box(66, 62, 512, 402)  # of the scatter
LEGEND = (540, 84, 20)  # left, top, height of a line
STRIPS = 470  # top of the bars
STRIP_HEIGHT, BAR_HEIGHT = 168, 92
BAR_LEFT, BAR_RIGHT = 66, 884
BAR_CAP = 3.0  # bars end here


@dataclass
class Bar:
    x: float
    y: float
    width: float
    height: float
    colour: str
    capped: bool
    title: str


@dataclass
class Panel:
    x: float
    width: float
    title: str
    value: str  # the subject's
    bars: list[Bar]
    missing: list[tuple[float, str]]  # place and sign


@dataclass
class Strip:
    title: str
    top: float
    base: float
    ticks: list[tuple[float, str]]
    panels: list[Panel]


def _height(value: float) -> float:
    return max(1.5, math.log(min(max(value, 1.0), BAR_CAP)) / math.log(BAR_CAP) * BAR_HEIGHT)


def _panel(summary: RunSummary, found: Means, group: tuple[str, str, int], left: float, width: float, base: float,
           key: str) -> Panel:
    looks, names = palette.looks(summary), wording.labels(summary)
    inner = width - 14
    arms = [arm for arm in found.arms if found.of(arm.name, group[0]).took_part]
    step = inner / max(len(arms), 1)
    panel = Panel(left, inner, group[1], wording.ratio(getattr(found.of(summary.subject, group[0]), key)), [], [])
    for at, arm in enumerate(arms):
        mean: Mean = found.of(arm.name, group[0])
        value, x = getattr(mean, key), left + at * step
        if math.isnan(value):
            panel.missing.append((x + step / 2, wording.FAILED if mean.failures else wording.NONE))
            continue
        height = _height(value)
        panel.bars.append(Bar(x, base - height, step - min(2.0, step / 5), height, looks[arm.name].colour,
                              value > BAR_CAP, f"{names[arm.name]}: {wording.ratio(value)}"))
    return panel


def _strip(summary: RunSummary, found: Means, title: str, top: float, key: str) -> Strip:
    base = top + 24 + BAR_HEIGHT
    width = (BAR_RIGHT - BAR_LEFT) / max(len(found.groups), 1)
    ticks = [(base - math.log(tick) / math.log(BAR_CAP) * BAR_HEIGHT, f"{tick:g}") for tick in (1, 1.5, 2, 3)]
    return Strip(title, top, base, ticks, [_panel(summary, found, group, BAR_LEFT + at * width, width, base, key)
                                           for at, group in enumerate(found.groups)])


def _scatter(summary: RunSummary, found: Means) -> dict:
    looks, names = palette.looks(summary), wording.labels(summary)
    arms = [arm for arm in found.arms if not math.isnan(found.of(arm.name).time + found.of(arm.name).peak)]
    arms.sort(key=lambda arm: arm.name != summary.subject)  # its label has the first choice
    low_x, high_x = ratio_range(found.of(arm.name).time for arm in arms)
    low_y, high_y = ratio_range(found.of(arm.name).peak for arm in arms)
    across, down = AREA.right - AREA.left, AREA.bottom - AREA.top

    def x_of(value: float) -> float:
        return AREA.left + math.log(value / low_x) / math.log(high_x / low_x) * across

    def y_of(value: float) -> float:
        return AREA.bottom - math.log(value / low_y) / math.log(high_y / low_y) * down
    points = [Point(x_of(found.of(arm.name).time), y_of(found.of(arm.name).peak), clip(names[arm.name], 36),
                    8 if arm.name == summary.subject else 5.5) for arm in arms]
    anchors = {"left": "start", "right": "end", "center": "middle"}
    return {
        "x_ticks": [(x_of(tick), f"{tick:g}") for tick in ratio_ticks(low_x, high_x, across)],
        "y_ticks": [(y_of(tick), f"{tick:g}") for tick in ratio_ticks(low_y, high_y, down, 30)],
        "points": [(point, label, anchors[label.anchor], looks[arm.name].colour, arm.name == summary.subject)
                   for arm, point, label in zip(arms, points, place_labels(points, AREA))],
    }


def draw(summary: RunSummary) -> str:
    """The picture's text."""
    found, names, looks = means(summary), wording.labels(summary), palette.looks(summary)
    left, top, step = LEGEND
    legend = [(top + 16 + at * step, clip(names[arm.name], 33), looks[arm.name].colour,
               wording.ratio(found.of(arm.name).time), wording.ratio(found.of(arm.name).peak),
               arm.name == summary.subject) for at, arm in enumerate(found.arms)]
    strips_top = max(STRIPS, top + 40 + len(legend) * step)
    strips = [_strip(summary, found, "Time", strips_top, "time"),
              _strip(summary, found, "Peak memory", strips_top + STRIP_HEIGHT, "peak")]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent / "templates"),
                                     autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["px"] = lambda value: f"{value:.1f}".removesuffix(".0")
    return environment.get_template("picture.svg.j2").render(
        width=WIDTH, height=strips_top + 2 * STRIP_HEIGHT - 6, area=AREA, legend=legend, legend_left=left,
        legend_top=top, subject=names[summary.subject], rows=found.common, strips=strips, cap=f"{BAR_CAP:g}",
        ink=palette.INK, mark=palette.SUBJECT, muted=palette.MUTED, grid=palette.GRID, bar_left=BAR_LEFT,
        bar_right=BAR_RIGHT, **_scatter(summary, found)) + "\n"
