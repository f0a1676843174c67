# SPDX-License-Identifier: MIT
"""The verdict of an A/B run: on the terminal, and as the table of an entry in docs/experiments.

A row is decided by time. Where time shows no difference, by instructions per operation if they were counted: they are
exact, so a change of the threshold's size in them is a change, even if this machine is too noisy to see it. A row with
two modes is decided by time only if all modes agree; else its time has no part in the means either.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from . import stats, tables, traits, whole, wording
from .errors import LabError
from .model import Cell, RowSummary, RunSummary, Verdict

BEGIN, END = "<!-- lab: begin -->", "<!-- lab: end -->"
Counts = dict[str, list[float]]


def count_verdict(pair: list[float], threshold: float = stats.THRESHOLD) -> Verdict:
    """Instruction counts have no spread; the ratio alone decides."""
    ratio = pair[0] / pair[1]
    word = "better" if ratio <= 1 - threshold else "worse" if ratio >= 1 + threshold else "no difference"
    return Verdict(word, ratio, rounds=1)


def decide(time: Verdict, count: Verdict | None, noise: float = 0.0) -> tuple[str, str]:
    """The word of the ledger for one row, and what it was decided by. An effect in time that is smaller than what the
    machine does to the A/A pair (noise) is none, and so is one that depends on the mode met."""
    drowned = time.word == "noisy" or (time.word in ("better", "worse") and not math.isnan(noise)
                                       and abs(1 - time.ratio) <= noise)
    if time.word in ("better", "worse") and not drowned:
        return stats.ledger_word(time), "time"
    if count is not None and count.word != "no difference":
        return stats.ledger_word(count), "instructions"
    return stats.ledger_word(time) if not drowned else "NEUTRAL", "noisy" if drowned else "time"


Z = 2.576  # half a 99 % interval, in standard errors


def overall(rows: list[tuple[str, Verdict]], threshold: float = stats.THRESHOLD) -> str:
    """The word for all rows together, from each row's word and the verdict that decided it: by the geometric mean, if
    that is further from 1 than the rows' intervals let it stray; no gain is bought with a larger loss on one row."""
    known = [(word, found) for word, found in rows if not math.isnan(found.ratio)]
    if not known:
        return stats.LEDGER["not measured"]
    logs = [math.log(found.ratio) for _, found in known]
    errors = [0 if math.isnan(found.low) else math.log(found.high / found.low) / (2 * Z) for _, found in known]
    mean = sum(logs) / len(logs)
    stray = Z * math.sqrt(sum(error * error for error in errors)) / len(logs)
    losses = [found.ratio - 1 for word, found in known if word == "NO-GO"]
    if max(losses, default=0.0) > max(1 - math.exp(mean), threshold):
        return "NO-GO"
    if abs(mean) <= stray:
        return "NEUTRAL"
    return "NO-GO" if math.exp(mean) >= 1 + threshold else "GO" if math.exp(mean) <= 1 - threshold else "NEUTRAL"


def _time(row: RowSummary, idea: str, against: str) -> Verdict:
    cell = row.cells.get(against)
    failed = idea not in row.cells or row.cells[idea].failure
    return cell.against if cell is not None and cell.against is not None and not failed else Verdict("not measured")


@dataclass
class Line:
    """One row of the table."""

    row: str
    decisive: Verdict  # that decides about it: of time, or of instructions
    word: str
    peak: float
    texts: list[str]


def _modes(row: RowSummary, new: Cell | None, old: Cell | None) -> str:
    """ ", 115 | 275 against 116 ns/op"; nothing where neither side has two modes."""
    if not traits.modes(new) and not traits.modes(old):
        return ""
    sides = [wording.modes(traits.modes(cell)) or wording.short(cell.time if cell else None) for cell in (new, old)]
    return f", {sides[0]} against {sides[1]} {row.row.unit}"


def _noise(row: RowSummary) -> float:
    """How far an effect must lie from 1 to count: beyond the whole interval of the A/A pair, which is wide if the rounds
    are few, as two or three of them agree by chance now and then."""
    return max(row.noise, stats.half_width(row.again)) if row.again else row.noise


def _line(row: RowSummary, sides: list[str], count: Verdict | None) -> Line:
    idea, against = sides
    time = _time(row, idea, against)
    word, by = decide(time, count, _noise(row))
    new, old = row.cells.get(idea), row.cells.get(against)
    peak = new.peak_kib / old.peak_kib if new and old and new.peak_kib and old.peak_kib else math.nan
    faults = traits.fault_ratio(new, old)
    failed = "; ".join(f"{cell.arm}: {cell.failure}" for cell in (new, old) if cell and cell.failure)
    texts = [row.row.id + wording.marks(row), tables.verdict(time), f"{count.ratio:.4f}" if count else "–",
             f"{faults:.2f}" if faults is not None else "–", f"{peak:.2f}" if not math.isnan(peak) else "–",
             tables.verdict(row.again), f"FAILED {failed}" if failed else f"{word} ({by}){_modes(row, new, old)}"]
    decisive = count if by == "instructions" and count is not None else time
    if decisive.word == "noisy":
        decisive = Verdict("noisy")  # its ratio is that of the modes met
    return Line(row.row.id, decisive, "NO-GO" if failed else word, peak, texts)


def lines(summary: RunSummary, sides: list[str], counts: Counts) -> list[Line]:
    return [_line(row, sides, count_verdict(counts[row.row.id]) if row.row.id in counts else None)
            for row in summary.ranked]


HEADINGS = ("row", "time ratio [99 %]", "instructions", "faults", "peak RSS", "A/A", "verdict")


def conclusion(found: list[Line], sides: list[str]) -> str:
    """One sentence over all rows."""
    word = overall([(line.word, line.decisive) for line in found])
    if any("FAILED" in line.texts[-1] for line in found):
        word = "NO-GO"
    mean = stats.geometric_mean([line.decisive.ratio for line in found])
    peak = stats.geometric_mean([line.peak for line in found])
    return f"{sides[0]} against {sides[1]}: {word}; geometric means: of what decided {mean:.4f}, of peak RSS {peak:.3f}"


def terminal(summary: RunSummary, sides: list[str], counts: Counts) -> Table:
    found = lines(summary, sides, counts)
    table = Table(title=f"{sides[0]} against {sides[1]} (below 1: {sides[0]} needs less)", title_justify="left",
                  header_style="bold", caption=conclusion(found, sides), caption_justify="left", caption_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("row", "verdict") else "right")
    for line in found:
        colour = "red" if line.word == "NO-GO" else "green" if line.word == "GO" else ""
        texts = [tables.escape(text) for text in line.texts]
        table.add_row(*texts[:-1], f"[{colour}]{texts[-1]}[/]" if colour else texts[-1])
    return table


def table(summary: RunSummary, sides: list[str], counts: Counts) -> str:
    """Markdown for the ledger."""
    arms = {arm.name: arm for arm in summary.arms}
    machine = summary.machine
    found = lines(summary, sides, counts)
    text = [f"`{sides[0]}` against `{sides[1]}`: {summary.rounds} rounds, {machine['processor']}, "
            f"{machine['cpus']} cpus, kernel {machine['kernel']}, {machine['glibc']}.",
            f"Libraries: {arms[sides[0]].label} ({arms[sides[0]].sha256[:12] or 'system'}), "
            f"{arms[sides[1]].label} ({arms[sides[1]].sha256[:12] or 'system'}).", "",
            "| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    text += ["| " + " | ".join(cell.replace("|", "\\|") for cell in line.texts) + " |" for line in found]
    return "\n".join([*text, "", conclusion(found, sides) + ".", ""])


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
        whole.write(path, after)
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from error
