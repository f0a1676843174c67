# SPDX-License-Identifier: MIT
"""The report: one HTML file that works offline. It says in words what the figures show, and holds the data.

Everything from outside (labels, reasons, names of programs) is escaped: by jinja2 in the page, in JSON by embed.py,
in plotly's texts by figures.py. A policy in the page forbids it to load anything.
"""
from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import jinja2

from . import embed, palette, stats, traits, warm, whole, wording
from .errors import LabError
from .figures import all_figures
from .means import common_rows, live_rows, together
from .model import ArmInfo, Latency, RowSummary, RunSummary
from .png import write_pngs
from .summary import NOISY

__all__ = ["render", "write_pngs", "write_report"]

TEMPLATES = Path(__file__).resolve().parent / "templates"
GROUPS = {  # in words; other groups are shown by their own name
    "small": "Small blocks", "program": "Patterns of programs", "threads": "Threads",
    "realloc": "Growing blocks (realloc)", "large": "Large blocks", "cliff": "Patterns that some allocators are bad at",
    "memory": "Memory given back",
    "start": "Start of a program", "latency": "Single calls", "app": "Real programs",
    "newest": "On the newest glibc", "own": "Your program",
}
MOST_NAMED = 12  # noisy rows in the summary's sentence
KINDS = {"subject": "subject", "peer": "peer", "again": "A/A pair", "ideal": "bound"}


def environment() -> jinja2.Environment:
    found = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                               lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    found.globals.update(ratio=wording.ratio, NONE=wording.NONE, marks=wording.marks)
    return found


@dataclass
class Column:
    """Of a row's table: a heading, its unit, and which value of a cell it shows."""

    title: str
    unit: str
    name: str  # data-column in the page
    texts: dict[str, str]  # by arm
    values: dict[str, Optional[float]]
    best: str = ""  # the arm whose value is marked


@dataclass
class RowView:
    index: int
    row: RowSummary
    sentences: list[str]
    columns: list[Column]
    arms: list[ArmInfo]
    latency: list[Latency]
    percentiles: list[str]
    rounds: int  # rows that time single calls have fewer than the run


def _column(title: str, unit: str, name: str, values: dict[str, Optional[float]], decimals: Optional[int] = None,
            significant: int = 3) -> Column:
    places = wording.places(values.values(), significant) if decimals is None else decimals
    return Column(title, unit, name, {arm: wording.number(value, places) for arm, value in values.items()}, values)


def _columns(row: RowSummary) -> list[Column]:
    cells = {name: cell for name, cell in row.cells.items() if not cell.failure}

    def values(key: str, scale: float = 1.0) -> dict[str, Optional[float]]:
        return {name: getattr(cell, key) * scale if getattr(cell, key) is not None else None
                for name, cell in cells.items()}
    time = _column("Time", row.row.unit, "time", values("time"))
    decimals = wording.places(time.values.values())
    spans = {name: wording.interval(cell.low, cell.high, decimals) for name, cell in cells.items()}
    steps = {name: wording.modes(traits.modes(cell)) or wording.NONE for name, cell in cells.items()}
    mib = 1 / 1024
    columns = [
        time, Column("Interval", row.row.unit, "interval", spans, {}), Column("Modes", row.row.unit, "modes", steps, {}),
        _column("Time", "× best", "time-ratio", values("time_ratio"), 2),
        _column("CPU", "ms", "cpu", values("cpu_ms")),
        _column("Peak RSS", "MiB", "peak", values("peak_kib", mib)),
        _column("Peak RSS", "× smallest", "peak-ratio", values("peak_ratio"), 2),
        _column("Average", "RSS, MiB", "average", values("average_kib", mib)),
        _column("After free", "RSS, MiB", "after", values("after_kib", mib)),
        _column("Peak / live", "×", "peak-to-live", values("peak_to_live"), 2),
        _column("End", "RSS, MiB", "end", values("end_kib", mib)),
        _column("End / live", "×", "end-to-live", values("end_to_live"), 2),
        _column("Faults", "minor", "faults", values("minflt"), 0),
        _column("Faults", "per operation", "faults-per-op", values("faults_per_op")),
    ]
    for column in columns:
        if column.name in ("time", "time-ratio"):
            column.best = row.best_time
        elif column.name in ("peak", "peak-ratio"):
            column.best = row.best_peak
    always = ("time", "interval", "time-ratio", "peak", "peak-ratio") + (("modes",) if traits.has_modes(row) else ())
    return [column for column in columns if column.name in always or any(map(wording.known, column.values.values()))]


def _row_view(summary: RunSummary, index: int, row: RowSummary, names: dict[str, str]) -> RowView:
    """Arms in the order of all figures, with the second arm of the A/A pair after the subject."""
    again = [arm for arm in summary.arms if arm.kind == "again" and not arm.skip]
    shown = palette.shown(summary)
    arms = [arm for arm in shown[:1] + again + shown[1:] if arm.name in row.cells]
    order = {arm.name: at for at, arm in enumerate(arms)}
    latency = sorted((one for one in summary.latency if one.row == row.row.id and one.arm in order),
                     key=lambda one: order[one.arm])
    keys = {key for one in latency for key in one.percentiles}
    percentiles = sorted(keys - {"max"}, key=float) + (["max"] if "max" in keys else [])
    rounds = max((cell.rounds for cell in row.cells.values()), default=0) or summary.rounds
    return RowView(index, row, wording.row_sentences(summary, row, names), _columns(row), arms, latency, percentiles,
                   rounds)


@dataclass
class Overall:
    """The summary's table, and its sentences."""

    arms: list[tuple[ArmInfo, Any, Counter]] = field(default_factory=list)  # with means and the subject's verdicts
    sentences: list[str] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)  # row, arm, reason


def _first(summary: RunSummary, names: dict[str, str]) -> str:
    wins = Counter(row.best_time for row in summary.ranked if row.best_time)
    if not wins:
        return "No row has a fastest allocator."
    parts = [f"{names.get(arm, arm)} on {number}" for arm, number in wins.most_common()]
    return f"Lowest time, of {wording.count(sum(wins.values()), 'row')}: {wording.and_list(parts)}."


def _of_rows(summary: RunSummary) -> str:
    """"12 rows", or "10 of 12 rows" where some rows are not common to all."""
    arms = [arm.name for arm in summary.arms if arm.kind in ("subject", "peer") and not arm.skip]
    common, rows = common_rows(summary.ranked, arms), wording.count(len(together(summary.ranked)), "row")
    return rows if len(common) == len(together(summary.ranked)) else f"{len(common)} of {rows}"


def _means_sentence(summary: RunSummary, names: dict[str, str]) -> str:
    timed = sorted((mean for mean in summary.means if wording.known(mean.time_mean)), key=lambda mean: mean.time_mean)
    mine = next((mean for mean in timed if mean.name == summary.subject), None)
    if mine is None:
        return ""
    text = f"{names[summary.subject]} takes {wording.ratio(mine.time_mean)} × the time of each row's best"
    text += f" and {wording.ratio(mine.peak_mean)} × the memory of each row's smallest" \
        if wording.known(mine.peak_mean) else ""
    text += f" (geometric means over {_of_rows(summary)})"
    others = [mean for mean in timed if mean is not mine]
    if others:
        best = others[0]
        text += f"; the best of the others, {names[best.name]}, {wording.ratio(best.time_mean)} ×"
        text += f" and {wording.ratio(best.peak_mean)} ×" if wording.known(best.peak_mean) else ""
    return text + "."


def _noise_sentence(summary: RunSummary) -> str:
    noisy = [row.row.id for row in summary.ranked if row.noisy]
    widths = [row.noise for row in summary.ranked if row.again and wording.known(row.noise) and row.noise > 0]
    text = f"The A/A pair agrees within ±{wording.percent(statistics.median(widths))} on the middle row. " \
        if widths else ""
    if not noisy:
        return text + "No row is noisy."
    if len(noisy) > MOST_NAMED:
        return text + f"{len(noisy)} of {wording.count(len(summary.ranked), 'row')} are noisy (~)."
    return text + f"{wording.count(len(noisy), 'row is', 'rows are')} noisy: {', '.join(noisy)}."


def _modes_sentence(summary: RunSummary, pairs: int) -> str:
    rows = [row.row.id for row in summary.ranked if traits.has_modes(row)]
    if not rows:
        return ""
    named = f": {', '.join(rows)}" if len(rows) <= MOST_NAMED else ""
    text = f"{wording.count(len(rows), 'row has', 'rows have')} two modes ({wording.MODES}){named}."
    return text + (f" For them {wording.count(pairs, 'pair has', 'pairs have')} no verdict." if pairs else "")


def _leads(summary: RunSummary, names: dict[str, str]) -> list[str]:
    own = [wording.lead_sentence(summary, row, names) for row in summary.rows if row.row.group == "own"]
    if own and len(own) == len(summary.rows):
        return own
    return [_first(summary, names), _means_sentence(summary, names)]


def overall(summary: RunSummary, names: dict[str, str]) -> Overall:
    found = Overall()
    means = {mean.name: mean for mean in summary.means}
    total: Counter = Counter()
    for arm in palette.shown(summary):
        tally = Counter(row.cells[arm.name].against.word for row in summary.ranked
                        if arm.name in row.cells and row.cells[arm.name].against)
        if arm.kind != "ideal":
            found.arms.append((arm, means.get(arm.name), tally))
            total += tally
    found.failures = [(row.row.id, names.get(cell.arm, cell.arm), cell.failure) for row in summary.rows
                      for cell in row.cells.values() if cell.failure]
    found.sentences = _leads(summary, names)
    if total["better"] + total["worse"] + total["no difference"]:
        found.sentences.append(
            f"Pair by pair, over all rows and all others, {names.get(summary.subject, summary.subject)} is better "
            f"{total['better']} times, not measurably different {total['no difference']} times and worse "
            f"{total['worse']} times.")
        found.sentences.append(wording.beaten(summary) + ".")
    found.sentences.append(f"{wording.count(len(found.failures), 'failure')}, listed below." if found.failures
                           else "Nothing failed.")
    found.sentences += [_modes_sentence(summary, total["noisy"]), _noise_sentence(summary)]
    skipped = [arm for arm in summary.arms if arm.skip]
    if skipped:
        found.sentences.append(f"Not measured: {', '.join(names[arm.name] for arm in skipped)} "
                               f"(reasons under Allocators).")
    if summary.skipped:
        found.sentences.append(f"{wording.count(len(summary.skipped), 'row is', 'rows are')} left out, listed below.")
    found.sentences = [sentence for sentence in found.sentences if sentence]
    return found


def _grouped(views: list[RowView]) -> list[tuple[str, list[RowView]]]:
    groups: dict[str, list[RowView]] = {}
    for view in views:
        groups.setdefault(GROUPS.get(view.row.row.group, view.row.row.group), []).append(view)
    return list(groups.items())


def _pair(summary: RunSummary, names: dict[str, str]) -> str:
    """The arm that runs twice: the subject, or what an idea is compared with."""
    again = next((arm for arm in summary.arms if arm.kind == "again" and not arm.skip), None)
    twin = again.name.rsplit("~", 1)[0] if again else summary.subject
    return names.get(twin, twin)


def render(summary: RunSummary) -> str:
    names = wording.labels(summary)
    figures = all_figures(summary)
    views = [_row_view(summary, index, row, names) for index, row in enumerate(summary.rows)]
    chosen = next((view.index for view in views if f"curve-{view.index}" in figures), 0)
    return environment().get_template("report.html.j2").render(
        summary=summary, names=names, subject=names.get(summary.subject, summary.subject),
        overall=overall(summary, names), parts=summary.parts, tier=wording.tier(summary), pair=_pair(summary, names),
        of_rows=_of_rows(summary), live_rows=live_rows(summary), shown=palette.shown(summary), groups=_grouped(views), views=views, chosen=chosen,
        looks=palette.looks(summary), figures=figures, kinds=KINDS, moment=wording.moment, bounds=wording.bounds,
        short=wording.short, known=wording.known, count=wording.count, level=f"{stats.LEVEL * 100:.0f} %",
        few=stats.FEW, wide=stats.WIDE, step=stats.STEP, warm=warm.LEAST_KIB // 1024, noisy=wording.percent(NOISY * summary.threshold), threshold=wording.percent(summary.threshold),
        style=embed.asset("report.css"), script=embed.asset("report.js"), library=embed.packed_library(),
        figures_json=embed.figures_json(figures), data_json=embed.data_json(summary))


def write_report(summary: RunSummary, path: Path) -> None:
    text = render(summary)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.write(path, text)
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from error
