# SPDX-License-Identifier: MIT
"""What the samples of scale_run.py say, as tables of text and as a picture.

Only the standard library is used, and the SVG is written by hand: whoever measures on a machine with many CPUs reads
the results there, and that machine may have no packages.
"""
from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Dict, List, Optional
from xml.sax.saxutils import escape

from . import palette
from .errors import LabError
from .model import ArmInfo

RUN, SAMPLES, TABLES, PICTURE = "run.json", "samples.csv", "scale.txt", "scale.svg"
COLUMNS = ("repetition row threads arm amount ops wall_ns cpu_ns hwm_kib minflt majflt nvcsw nivcsw check "
           "failure").split()
STOPS = 1.3  # twice the threads bring less than so many times the throughput: here an allocator stops scaling
NONE = "–"
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS_OF_PANELS = 440, 300, 2
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 34, 36  # margins in a panel
LEGEND_LINE, LEGEND_COLUMN = 20, 290
STEPS = (1, 2, 5)
DASHES = {"dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}


def cell(row: str, threads: int) -> str:
    return f"{row}, {threads} thread{'s' * (threads > 1)}"


class Results:
    """Medians over the repetitions: operations a second, and peak RSS, by row, threads and arm."""

    def __init__(self, out: Path):
        try:
            said = json.loads((out / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LabError(f"{out} has no results: {error}") from error
        self.machine: Dict[str, str] = said["machine"]
        self.seconds: float = said["seconds"]
        self.arms = [ArmInfo(**arm) for arm in said["arms"]]
        self.titles: Dict[str, str] = {row["id"]: row["title"] for row in said["rows"]}
        self.failures: Dict[tuple, str] = {}
        rates: Dict[tuple, List[float]] = {}
        peaks: Dict[tuple, List[float]] = {}
        with open(out / SAMPLES, encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                key = (line["row"], int(line["threads"]), line["arm"])
                if line["failure"]:
                    self.failures[key] = line["failure"]
                elif line["check"]:
                    rates.setdefault(key, []).append(int(line["ops"]) / int(line["wall_ns"]) * 1e9)
                    peaks.setdefault(key, []).append(int(line["hwm_kib"]))
        self.repetitions = max(map(len, rates.values()), default=0)
        self.rates = {key: statistics.median(values) for key, values in rates.items() if key not in self.failures}
        self.peaks = {key: statistics.median(peaks[key]) for key in self.rates}
        self.rows = [row for row in self.titles if self.counts(row)]

    def counts(self, row: str) -> List[int]:
        """Numbers of threads with which the row was measured."""
        return sorted({threads for name, threads, _ in self.rates if name == row})

    def curve(self, row: str, arm: str) -> Dict[int, float]:
        return {threads: self.rates[row, threads, arm] for threads in self.counts(row)
                if (row, threads, arm) in self.rates}


def stop(curve: Dict[int, float]) -> Optional[int]:
    """The number of threads from which on more threads no longer pay, for the first time; None: they always did."""
    counts = sorted(curve)
    for fewer, more in zip(counts, counts[1:]):
        if curve[more] / curve[fewer] < STOPS ** math.log2(more / fewer):
            return fewer
    return None


def _number(value: Optional[float]) -> str:
    """Three significant digits."""
    if value is None or value <= 0:
        return NONE
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def _aligned(lines: List[List[str]]) -> List[str]:
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                      for at, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines]


def _row_table(found: Results, row: str) -> List[str]:
    counts = found.counts(row)
    last = counts[-1]
    lines = [["threads", *map(str, counts), "speed-up", "stops at", f"peak MiB, {counts[0]}", f"peak MiB, {last}"]]
    best = {count: max(found.rates[key] for key in found.rates if key[:2] == (row, count)) for count in counts}
    for arm in found.arms:
        curve = found.curve(row, arm.name)
        cells = [_number(curve[count] / 1e6 if count in curve else None)
                 + ("*" if curve.get(count) == best[count] else " ") for count in counts]
        speedup = curve[last] / curve[counts[0]] if last in curve and counts[0] in curve else None
        peaks = [found.peaks.get((row, count, arm.name)) for count in (counts[0], last)]
        lines.append([arm.label, *cells, _number(speedup), str(stop(curve) or NONE),
                      *[_number(peak / 1024 if peak else None) for peak in peaks]])
    return [f"{row}: {found.titles[row]}", *_aligned(lines)]


def _mean(values: List[float]) -> Optional[float]:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _summary(found: Results) -> List[str]:
    """With the most threads of each row: throughput, speed-up and peak, geometric means over the rows."""
    subject = found.arms[0].name
    lines = [["allocator", "throughput", "speed-up", "peak", "stops at"]]
    for arm in found.arms:
        rates, peaks, speedups, stops = [], [], [], []
        for row in found.rows:
            counts, curve = found.counts(row), found.curve(row, arm.name)
            key, own = (row, counts[-1], arm.name), (row, counts[-1], subject)
            if key in found.rates and own in found.rates:
                rates.append(found.rates[key] / found.rates[own])
                peaks += [found.peaks[key] / found.peaks[own]] if found.peaks[key] and found.peaks[own] else []
            if {counts[0], counts[-1]} <= curve.keys():
                speedups.append(curve[counts[-1]] / curve[counts[0]])
            if stop(curve):
                stops.append(f"{row} {stop(curve)}")
        part = "" if len(rates) == len(found.rows) else f" ({len(rates)} of {len(found.rows)} rows)"
        lines.append([arm.label + part, *[_number(_mean(values)) for values in (rates, speedups, peaks)],
                      ", ".join(stops) or NONE])
    widths = [max(len(line[at]) for line in lines) for at in range(4)]
    return [f"{line[0].ljust(widths[0])}  " + "  ".join(line[at].rjust(widths[at]) for at in (1, 2, 3)) + f"  {line[4]}"
            for line in lines]


def tables(found: Results) -> str:
    parts = [[f"{key}: {value}" for key, value in found.machine.items()],
             [f"{arm.label}: version {arm.version or 'unknown'}, sha256 {arm.sha256[:16] or NONE}"
              for arm in found.arms],
             [f"Medians of at most {found.repetitions} repetitions, about {found.seconds:.2f} s a measurement, the same"
              " work for each thread.", "Speed-up: from a row's least to its most threads. Stops at: from so many threads"
              f" on twice as many bring less than {STOPS} ×."]]
    if found.rows:
        parts += [["With the most threads, geometric means over the rows: throughput and peak RSS over"
                   f" {found.arms[0].label}'s.", *_summary(found)],
                  ["Millions of operations a second; * is the most of a column."]]
    parts += [_row_table(found, row) for row in found.rows]
    if found.failures:
        parts.append(["Failed:", *[f"{cell(*key[:2])}, {key[2]}: {why}"
                                   for key, why in sorted(found.failures.items())]])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _axis(values: List[float]) -> List[float]:
    """Round numbers around the values, for a logarithmic axis."""
    ticks = [step * 10.0 ** power for power in range(-3, 6) for step in STEPS]
    low = max(tick for tick in ticks if tick <= min(values) or tick == ticks[0])
    high = min(tick for tick in ticks if tick >= max(values) or tick == ticks[-1])
    return [tick for tick in ticks if low <= tick <= max(high, 2 * low)]


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _line(points: List[tuple], colour: str, width: float, dash: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def _panel(found: Results, row: str, left: float, top: float, looks: Dict[str, palette.Look]) -> List[str]:
    counts = found.counts(row)
    ticks = _axis([rate / 1e6 for key, rate in found.rates.items() if key[0] == row])
    right, bottom = left + PANEL_WIDTH - RIGHT, top + PANEL_HEIGHT - BOTTOM
    octaves = max(math.log2(counts[-1] / counts[0]), 1)

    def place(threads: float, rate: float):
        return (left + LEFT + math.log2(threads / counts[0]) / octaves * (right - left - LEFT),
                bottom - math.log(rate / ticks[0]) / math.log(ticks[-1] / ticks[0]) * (bottom - top - TOP))
    lines = [_text(left + LEFT, top + 22, row, 'font-weight="bold"')]
    for tick in ticks:
        y = place(counts[0], tick)[1]
        lines += [_line([(left + LEFT, y), (right, y)], palette.GRID, 1, ""),
                  _text(left + LEFT - 6, y + 4, f"{tick:g}", 'text-anchor="end"')]
    for count in counts:
        lines.append(_text(place(count, ticks[0])[0], bottom + 18, str(count), 'text-anchor="middle"'))
    first = found.curve(row, found.arms[0].name)
    if first:  # as the subject would go on if each thread brought as much as the first
        start, rate = min(first.items())
        most = min(counts[-1], start * ticks[-1] / (rate / 1e6))
        lines.append(_line([place(start, rate / 1e6), place(most, rate / 1e6 * most / start)], palette.MUTED, 1, "1 4"))
    for arm in reversed(found.arms):
        look = looks[arm.name]
        points = [place(threads, rate / 1e6) for threads, rate in sorted(found.curve(row, arm.name).items())]
        lines.append(_line(points, look.colour, look.width, DASHES.get(look.dash, "")))
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{1.3 * look.width:.1f}" fill="{look.colour}"/>'
                  for x, y in points]
    return lines


def picture(found: Results) -> str:
    looks = palette.looks(SimpleNamespace(arms=found.arms, subject=found.arms[0].name))
    width = COLUMNS_OF_PANELS * PANEL_WIDTH
    across = width // LEGEND_COLUMN
    legend_top = 62
    panels_top = legend_top + LEGEND_LINE * math.ceil(len(found.arms) / across) + 6
    height = panels_top + PANEL_HEIGHT * math.ceil(len(found.rows) / COLUMNS_OF_PANELS)
    about = ", ".join(found.machine.get(key, "") for key in ("processor", "memory", "kernel", "date"))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="12" fill="{palette.INK}">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             _text(12, 24, "Million operations a second, by threads", 'font-size="16" font-weight="bold"'),
             _text(12, 44, f"{found.machine.get('cpus', '?')} CPUs: {about}. Dotted: {found.arms[0].label} with each"
                   " thread as fast as one", f'font-size="11" fill="{palette.MUTED}"')]
    for at, arm in enumerate(found.arms):
        x, y = 12 + at % across * LEGEND_COLUMN, legend_top + at // across * LEGEND_LINE
        look = looks[arm.name]
        lines += [_line([(x, y), (x + 30, y)], look.colour, look.width, DASHES.get(look.dash, "")),
                  _text(x + 38, y + 4, arm.label)]
    for at, row in enumerate(found.rows):
        lines += _panel(found, row, at % COLUMNS_OF_PANELS * PANEL_WIDTH,
                        panels_top + at // COLUMNS_OF_PANELS * PANEL_HEIGHT, looks)
    return "\n".join(lines + ["</svg>"]) + "\n"


def write(out: Path) -> str:
    """The files beside the samples; returns the tables' text."""
    found = Results(out)
    text = tables(found)
    (out / TABLES).write_text(text, encoding="utf-8")
    if found.rows:
        (out / PICTURE).write_text(picture(found), encoding="utf-8")
    return text
