# SPDX-License-Identifier: MIT
"""The verdict of an A/B run: on the terminal, and as the table of an entry in docs/experiments.

Decided by time. Where time shows no difference, by instructions per operation if they were counted: they are exact,
so a change of the threshold's size in them is a change, even if this machine is too noisy to see it.
"""
from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from . import stats, tables
from .errors import LabError
from .model import RowSummary, RunSummary, Verdict

BEGIN, END = "<!-- lab: begin -->", "<!-- lab: end -->"
Counts = dict[str, list[float]]


def count_verdict(pair: list[float], threshold: float = stats.THRESHOLD) -> Verdict:
    """Instruction counts have no spread; the ratio alone decides."""
    ratio = pair[0] / pair[1]
    word = "better" if ratio <= 1 - threshold else "worse" if ratio >= 1 + threshold else "no difference"
    return Verdict(word, ratio, rounds=1)


def decide(time: Verdict, count: Verdict | None) -> tuple[str, str]:
    """The word of the ledger, and what it was decided by."""
    if time.word in ("better", "worse") or count is None or count.word == "no difference":
        return stats.ledger_word(time), "time"
    return stats.ledger_word(count), "instructions"


def _time(row: RowSummary, idea: str, against: str) -> Verdict:
    cell = row.cells.get(against)
    failed = idea not in row.cells or row.cells[idea].failure
    return cell.against if cell is not None and cell.against is not None and not failed else Verdict("not measured")


def _lines(summary: RunSummary, sides: list[str], counts: Counts) -> list[list[str]]:
    idea, against = sides
    lines = []
    for row in summary.rows:
        time = _time(row, idea, against)
        count = count_verdict(counts[row.row.id]) if row.row.id in counts else None
        word, by = decide(time, count)
        new, old = row.cells.get(idea), row.cells.get(against)
        peak = new.peak_kib / old.peak_kib if new and old and new.peak_kib and old.peak_kib else math.nan
        failed = "; ".join(f"{cell.arm}: {cell.failure}" for cell in (new, old) if cell and cell.failure)
        lines.append([row.row.id + (" ~" if row.noisy else ""), tables.verdict(time),
                      f"{count.ratio:.4f}" if count else "–", f"{peak:.2f}" if not math.isnan(peak) else "–",
                      tables.verdict(row.again), f"FAILED {failed}" if failed else f"{word} ({by})"])
    return lines


HEADINGS = ("row", "time ratio [99 %]", "instructions", "peak RSS", "A/A", "verdict")


def means(summary: RunSummary, sides: list[str], counts: Counts) -> str:
    """One sentence over all rows."""
    idea, against = sides
    times = [_time(row, idea, against).ratio for row in summary.rows]
    text = f"geometric mean of the time ratios: {stats.geometric_mean(times):.4f}"
    if counts:
        text += f"; of instructions: {stats.geometric_mean([pair[0] / pair[1] for pair in counts.values()]):.4f}"
    return text


def terminal(summary: RunSummary, sides: list[str], counts: Counts) -> Table:
    table = Table(title=f"{sides[0]} against {sides[1]} (below 1: {sides[0]} needs less)", title_justify="left",
                  header_style="bold", caption=means(summary, sides, counts), caption_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("row", "verdict") else "right")
    for line in _lines(summary, sides, counts):
        colour = "red" if "NO-GO" in line[-1] or "FAILED" in line[-1] else "green" if line[-1][:2] == "GO" else ""
        line = [tables.escape(word) for word in line]
        table.add_row(*line[:-1], f"[{colour}]{line[-1]}[/]" if colour else line[-1])
    return table


def table(summary: RunSummary, sides: list[str], counts: Counts) -> str:
    """Markdown for the ledger."""
    arms = {arm.name: arm for arm in summary.arms}
    machine = summary.machine
    text = [f"`{sides[0]}` against `{sides[1]}`: {summary.rounds} rounds, {machine['processor']}, "
            f"{machine['cpus']} cpus, kernel {machine['kernel']}, {machine['glibc']}.",
            f"Libraries: {arms[sides[0]].label} ({arms[sides[0]].sha256[:12] or 'system'}), "
            f"{arms[sides[1]].label} ({arms[sides[1]].sha256[:12] or 'system'}).", "",
            "| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    text += ["| " + " | ".join(line) + " |" for line in _lines(summary, sides, counts)]
    return "\n".join([*text, "", means(summary, sides, counts).capitalize() + ".", ""])


def write(path: Path, text: str) -> None:
    """Puts the table between the entry's markers, or at its end; a new file is begun."""
    block = f"{BEGIN}\n{text}{END}\n"
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else f"# {path.stem}\n\n"
        if BEGIN in before and END in before:
            head, rest = before.split(BEGIN, 1)
            after = head + block + rest.split(END, 1)[1].lstrip("\n")
        else:
            after = before.rstrip("\n") + "\n\n" + block
        path.write_text(after, encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from error
