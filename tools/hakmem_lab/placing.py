# SPDX-License-Identifier: MIT
"""Where the labels of a scatter go, so that none lies on another or on a point; and the ticks of an axis of ratios.

Works in pixels. Every label tries places around its point, near ones first, and takes the first free one. What is
placed stays: the order of the points decides, so the result is always the same.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable

TICKS = (  # from fine to coarse: the first that fits is taken
    tuple(1 + 0.02 * step for step in range(16)), tuple(1 + 0.05 * step for step in range(13)),
    tuple(1 + 0.1 * step for step in range(11)), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4),
    (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10), (1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40),
    (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), tuple(10.0 ** power for power in range(10)),
)
EM = 0.60  # average width of a character in text sizes, on the safe side for system fonts
DIRECTIONS = ((1, 0), (-1, 0), (0.7, -1), (0.7, 1), (-0.7, -1), (-0.7, 1), (0, -1), (0, 1))


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (self.left < other.right and other.left < self.right
                and self.top < other.bottom and other.top < self.bottom)

    def within(self, other: "Box") -> bool:
        return (self.left >= other.left and self.right <= other.right
                and self.top >= other.top and self.bottom <= other.bottom)


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    text: str
    radius: float = 6.0


@dataclass(frozen=True)
class Label:
    x: float  # of the text's beginning, middle or end, as the anchor says: the side towards its point
    y: float  # middle of the text
    anchor: str  # "left" | "center" | "right"
    far: bool  # away from its point: draw a line to it


def _box(x: float, y: float, width: float, height: float) -> Box:
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _candidates(point: Point, width: float, height: float) -> Iterable[tuple[Label, Box]]:
    for gap in (3, 12, 24, 38, 54, 72, 92, 114, 138):
        for dx, dy in DIRECTIONS:
            x, y = point.x + dx * (point.radius + gap), point.y + dy * (point.radius + gap / 1.6 + height / 2)
            anchor = "left" if dx > 0 else "right" if dx < 0 else "center"
            middle = x + (width / 2 if dx > 0 else -width / 2 if dx < 0 else 0)
            yield Label(x, y, anchor, gap > 8), _box(middle, y, width, height)


def place_labels(points: list[Point], area: Box, font: float = 13) -> list[Label]:
    """One label per point, in the points' order."""
    taken = [_box(point.x, point.y, 2 * point.radius, 2 * point.radius) for point in points]
    labels = []
    for point in points:
        width, height = len(point.text) * font * EM + 4, font * 1.35
        free = ((label, box) for label, box in _candidates(point, width, height)
                if box.within(area) and not any(box.meets(other) for other in taken))
        label, box = next(free, next(iter(_candidates(point, width, height))))  # better on something than nowhere
        taken.append(box)
        labels.append(label)
    return labels


def ratio_range(values: Iterable[float]) -> tuple[float, float]:
    """A range for a logarithmic axis of ratios, from a little below 1, with room at the upper end."""
    known = [value for value in values if value and math.isfinite(value) and value > 0]
    low, high = min(known, default=1.0), max(known, default=1.0)
    low, high = min(low, 1.0), max(high, 1.1)
    room = (high / low) ** 0.06
    return low / room, high * room * room


def ratio_ticks(low: float, high: float, pixels: float, room: float = 42) -> list[float]:
    """Round ratios within the range that lie at least `room` pixels apart on a logarithmic axis."""
    scale = pixels / math.log(high / low)
    inside: list[float] = []
    for ticks in TICKS:
        inside = [round(tick, 2) for tick in ticks if low <= tick <= high]
        apart = all(math.log(b / a) * scale >= room for a, b in zip(inside, inside[1:]))
        if apart and ticks[-1] >= high:
            break
    return inside
