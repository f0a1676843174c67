# SPDX-License-Identifier: MIT
"""What a run prints on the terminal."""
from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table

from . import stats, traits, wording
from .means import live_rows
from .model import ArmInfo, Cell, RowSummary, RunSummary, Verdict

WIDTH = 160  # when the output is no terminal


def console(stderr: bool = False) -> Console:
    found = Console(stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH)


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits, without an exponent."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def kib(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{number(value)} KiB" if value < 10_000 else f"{number(value / 1024)} MiB"


def ratio(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    colour = "green" if value < 1.005 else "red" if value > 1.5 else "yellow" if value > 1.1 else ""
    text = f"{value:.2f}"
    return f"[{colour}]{text}[/]" if colour else text


def verdict(found: Verdict | None) -> str:
    if found is None or math.isnan(found.ratio):
        return "–"
    if math.isnan(found.low):
        return f"{found.ratio:.3f}"
    return f"{found.ratio:.3f} [{found.low:.3f}–{found.high:.3f}]"


def escape(text: str) -> str:
    return text.replace("[", "\\[")


def _shown(summary: RunSummary) -> list[ArmInfo]:
    return [arm for arm in summary.arms if not arm.skip and arm.kind != "again"]


def _ratios(summary: RunSummary, caption: str, best: str, pick) -> Table:
    table = Table(title=caption, title_justify="left", header_style="bold")
    table.add_column("row", no_wrap=True)
    table.add_column(best, justify="right", no_wrap=True)
    arms = _shown(summary)
    for arm in arms:
        table.add_column(arm.name, justify="right", min_width=5, overflow="fold")
    table.add_column("A/A", justify="right", no_wrap=True)
    for row in summary.ranked:
        first, cells = pick(row)
        noise = f"±{row.noise * 100:.1f} %" if row.again and not math.isnan(row.noise) else "–"
        table.add_row(row.row.id + wording.marks(row), first,
                      *[("[red]✕[/]" if row.cells[arm.name].failure else ratio(cells.get(arm.name)))
                        if arm.name in row.cells else "" for arm in arms], noise)
    return table


def time_table(summary: RunSummary) -> Table:
    def pick(row: RowSummary):
        best: Cell | None = row.cells.get(row.best_time)
        first = f"{number(best.time)} {row.row.unit}" if best else "–"
        return first, {name: cell.time_ratio for name, cell in row.cells.items()}
    caption = "Time: ratio to the row's best allocator (1.00 is first; ~ noisy row; ⇅ two modes; ✕ failed)"
    return _ratios(summary, caption, "best", pick)


def _some_rows(summary: RunSummary, rows: list[RowSummary], title: str, say) -> Table:
    """Rows × allocators, with the row's unit."""
    table = Table(title=title, title_justify="left", header_style="bold")
    arms = _shown(summary)
    for name in ("row", "unit"):
        table.add_column(name, no_wrap=True)
    for arm in arms:
        table.add_column(arm.name, justify="right", overflow="fold")
    for row in rows:
        cells = [row.cells.get(arm.name) for arm in arms]
        table.add_row(row.row.id + wording.marks(row), row.row.unit,
                      *["" if cell is None else "[red]✕[/]" if cell.failure else say(cell) for cell in cells])
    return table


def modes_table(summary: RunSummary) -> Table | None:
    """Time of the rows with two modes; None if there are none."""
    rows = [row for row in summary.ranked if traits.has_modes(row)]
    return _some_rows(summary, rows, "Rows with two modes: time in the low | in the high mode",
                      lambda cell: wording.modes(traits.modes(cell)) or number(cell.time)) if rows else None


def fault_table(summary: RunSummary) -> Table | None:
    """Time beside faults; None if page faults decide no row."""
    rows = [row for row in summary.ranked if traits.is_decided_by_faults(row)]
    return _some_rows(summary, rows, "Rows that page faults decide: time / minor faults per operation",
                      lambda cell: f"{number(cell.time)} / {number(cell.faults_per_op)}") if rows else None


def memory_table(summary: RunSummary) -> Table:
    def pick(row: RowSummary):
        best = row.cells.get(row.best_peak)
        return kib(best.peak_kib if best else None), {name: cell.peak_ratio for name, cell in row.cells.items()}
    return _ratios(summary, "Memory: peak RSS, ratio to the row's smallest", "smallest", pick)


def live_table(summary: RunSummary) -> Table:
    """Allocators beside each other, a column for each row that says what lives at its end."""
    table = Table(title="Memory against live bytes: peak RSS / most live bytes, RSS at the end of the work / bytes "
                        "that live then", title_justify="left", header_style="bold")
    rows = live_rows(summary)
    table.add_column("allocator", no_wrap=True)
    for row in rows:
        table.add_column(row.row.id, justify="right")
    for arm in _shown(summary):
        cells = [row.cells.get(arm.name) for row in rows]
        if any(cells):
            table.add_row(arm.name, *["" if cell is None else "[red]✕[/]" if cell.failure else
                                      f"{number(cell.peak_to_live)} / {number(cell.end_to_live)}" for cell in cells])
    return table


def verdict_table(summary: RunSummary) -> Table:
    subject = summary.subject
    table = Table(title=f"{subject}'s time / that of each (below 1: {subject} needs less), with 99 % intervals",
                  title_justify="left", header_style="bold")
    arms = [arm for arm in _shown(summary) if arm.kind == "peer" and arm.name != summary.subject]
    table.add_column("row", no_wrap=True)
    for arm in arms:
        table.add_column(arm.name, justify="right", overflow="fold")
    colours = {"better": "green", "worse": "red"}
    for row in summary.ranked:
        words = []
        for arm in arms:
            against = row.cells[arm.name].against if arm.name in row.cells else None
            text = escape(verdict(against))
            colour = colours.get(against.word, "") if against else ""
            words.append(f"[{colour}]{text}[/]" if colour else text)
        table.add_row(row.row.id + wording.marks(row), *words)
    return table


def dominance_table(summary: RunSummary) -> Table:
    """Only rows on which somebody is at least as good in both, and better in one."""
    rows = [row for row in summary.ranked if row.dominators]
    table = Table(title=wording.beaten(summary), title_justify="left", header_style="bold")
    for name in ("row", "by"):
        table.add_column(name, no_wrap=True)
    for name in ("time", "peak RSS"):
        table.add_column(f"{summary.subject}'s {name} / its", justify="right")
    for row in rows:
        for name in row.dominators:
            cell = row.cells[name]
            table.add_row(row.row.id + wording.marks(row), name, escape(verdict(cell.against)),
                          escape(verdict(cell.peak_against)))
    return table


def means_table(summary: RunSummary) -> Table:
    table = Table(title="Over all rows: geometric means of the ratios to the row's best", title_justify="left",
                  header_style="bold")
    for name in ("allocator", "version", "rows", "time", "peak RSS", "first in time", "failures"):
        table.add_column(name, justify="left" if name in ("allocator", "version") else "right")
    arms = {arm.name: arm for arm in summary.arms}
    for mean in sorted(summary.means, key=lambda mean: (math.isnan(mean.time_mean), mean.time_mean)):
        table.add_row(mean.name, arms[mean.name].version, str(mean.rows), ratio(mean.time_mean), ratio(mean.peak_mean),
                      str(mean.first), f"[red]{mean.failures}[/]" if mean.failures else "0")
    for arm in summary.arms:
        if arm.skip:
            table.add_row(arm.name, f"[yellow]SKIP[/] {escape(arm.skip)}", "", "", "", "", "")
    return table


def failure_lines(summary: RunSummary) -> list[str]:
    return [f"{row.row.id}: {name}: {cell.failure}" for row in summary.rows for name, cell in row.cells.items()
            if cell.failure]


def latency_table(summary: RunSummary) -> Table:
    table = Table(title="Latency of one malloc or free, ns", title_justify="left", header_style="bold")
    names = list(summary.latency[0].percentiles) if summary.latency else []
    for name in ("row", "allocator"):
        table.add_column(name, no_wrap=True)
    for name in names:
        table.add_column(name if name == "max" else f"p{name}", justify="right")
    for entry in summary.latency:
        if not entry.arm.endswith("~again"):
            table.add_row(entry.row, entry.arm, *[number(entry.percentiles.get(name)) for name in names])
    return table


def peers_table(arms: list[ArmInfo], about: dict[str, str]) -> Table:
    table = Table(header_style="bold")
    for name in ("name", "version", "what", "library"):
        table.add_column(name, overflow="fold")
    for arm in arms:
        version = f"[yellow]SKIP[/] {escape(arm.skip)}" if arm.skip else arm.version
        table.add_row(arm.name, version, escape(about.get(arm.name, "")), arm.library or "the C library")
    return table


def print_run(out: Console, summary: RunSummary) -> None:
    machine = summary.machine
    out.print(f"[bold]{summary.id}[/]: {wording.tier(summary)}, {summary.rounds} rounds, {machine['processor']}, "
              f"{machine['cpus']} cpus, kernel {machine['kernel']}, {machine['glibc']}")
    if summary.ranked:
        for table in (time_table(summary), modes_table(summary), fault_table(summary), memory_table(summary)):
            if table is not None:
                out.print(table)
    if live_rows(summary):
        out.print(live_table(summary))
    if summary.ranked and summary.rounds >= stats.FEW:
        out.print(verdict_table(summary))
        out.print(dominance_table(summary))
    if summary.latency:
        out.print(latency_table(summary))
    if summary.ranked:
        out.print(means_table(summary))
    for line in failure_lines(summary):
        out.print(f"[red]failed[/] {escape(line)}")
    if not summary.complete:
        out.print("[yellow]The run is not complete;[/] ./hakmem lab run --resume goes on with it.")
