# SPDX-License-Identifier: MIT
"""Numbers as people read them, and sentences about a row and a run. Plain text: who prints it escapes it."""
from __future__ import annotations

import datetime
import math
from collections import Counter
from typing import Iterable, Optional

from . import traits
from .model import ArmInfo, Cell, RowSummary, RunSummary, Verdict

TIERS = {"full": "full matrix", "quick": "quick run", "rows": "chosen rows", "own": "your program",
         "health": "health check"}
COMMANDS = {"ab": "two allocators side by side", "latency": "single calls"}
NONE = "–"
FAILED = "✕"
MODES = "⇅"
THIN = "\u202f"  # narrow no-break space: between groups of digits


def known(value: Optional[float]) -> bool:
    return value is not None and math.isfinite(value)


def places(values: Iterable[Optional[float]], significant: int = 3, most: int = 3) -> int:
    """Decimals for a column, so that its smallest value has that many significant digits."""
    sizes = [abs(value) for value in values if known(value) and value != 0]
    if not sizes:
        return 0
    return min(most, max(0, significant - 1 - math.floor(math.log10(min(sizes)))))


def number(value: Optional[float], decimals: int) -> str:
    return f"{value:,.{decimals}f}".replace(",", THIN) if known(value) else NONE


def short(value: Optional[float]) -> str:
    """Three significant digits."""
    return number(value, places([value]))


def ratio(value: Optional[float]) -> str:
    return number(value, 2)


def percent(share: float) -> str:
    """0.034 → "3.4 %"; from 10 % on without decimals."""
    amount = abs(share) * 100
    return f"{amount:.0f} %" if amount >= 9.95 else f"{amount:.1f} %"


def memory(kib: Optional[float]) -> str:
    if not known(kib):
        return NONE
    return f"{short(kib)} KiB" if kib < 1024 else f"{short(kib / 1024)} MiB"


def interval(low: Optional[float], high: Optional[float], decimals: int) -> str:
    return f"{number(low, decimals)}–{number(high, decimals)}" if known(low) and known(high) else NONE


def modes(found: Optional[tuple[float, float]]) -> str:
    """ "115 | 275": the low and the high mode; nothing where there is one."""
    return f"{short(found[0])} | {short(found[1])}" if found else ""


def marks(row: RowSummary) -> str:
    """Behind a row's name: ~ where it is noisy, ⇅ where it has two modes."""
    return (" ~" if row.noisy else "") + (f" {MODES}" if traits.has_modes(row) else "")


def bounds(found: Optional[Verdict]) -> str:
    """ "0.930 (0.910–0.950)" """
    if found is None or not known(found.ratio):
        return NONE
    text = number(found.ratio, 3)
    return f"{text} ({interval(found.low, found.high, 3)})" if known(found.low) and known(found.high) else text


def moment(text: str) -> str:
    """ "2026-05-09T14:03:11+00:00" → "2026-05-09 14:03 UTC"; other texts as they are."""
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = " UTC" if when.utcoffset() == datetime.timedelta(0) else when.strftime(" %z").rstrip()
    return f"{when:%Y-%m-%d %H:%M}{zone}"


def tier(summary: RunSummary) -> str:
    """What kind of run it was. `ab` and `latency` choose rows by the tiers of `run`; the run's id has the command."""
    command = (summary.id.split("-") + ["", "", ""])[2]
    if summary.tier != "own" and command in COMMANDS:
        return COMMANDS[command]
    return TIERS.get(summary.tier, summary.tier)


def count(amount: int, noun: str, many: str = "") -> str:
    return f"{amount} {noun if amount == 1 else many or noun + 's'}"


def and_list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def label(arm: ArmInfo) -> str:
    """With the version's first word, unless the label names a version. The whole version stands in the report."""
    if not arm.version or any(character.isdigit() for character in arm.label):
        return arm.label
    return f"{arm.label} {arm.version.split(',')[0].split()[0]}"


def labels(summary: RunSummary) -> dict[str, str]:
    """By arm name; arms that would read the same get their names in brackets."""
    texts = {arm.name: label(arm) for arm in summary.arms}
    twice = {text for text, times in Counter(texts.values()).items() if times > 1}
    return {name: f"{text} [{name}]" if text in twice else text for name, text in texts.items()}


def compared(found: Verdict, other: str) -> str:
    """What the subject's verdict against another arm says in words."""
    if found.word == "no difference":
        return f"no measurable difference from {other}: ratio {bounds(found)}"
    if found.word == "better":
        return f"{percent(1 - found.ratio)} less time than {other}"
    if found.word == "worse":
        more = f"{percent(found.ratio - 1)} more time than" if found.ratio < 2 else f"{found.ratio:.1f} × the time of"
        return f"{more} {other}"
    if found.word == "noisy":
        return f"{ratio(found.ratio)} × the time of {other}, without a verdict: the modes that the rounds met decide"
    if known(found.ratio):
        return f"{ratio(found.ratio)} × the time of {other}, without a verdict: too few rounds"
    return f"not compared with {other}: too few rounds"


def rivals(summary: RunSummary, row: RowSummary) -> list[Cell]:
    """The peers that have a time on the row, the fastest first."""
    peers = {arm.name for arm in summary.arms if arm.kind == "peer" and arm.name != summary.subject}
    cells = [cell for cell in row.cells.values() if cell.arm in peers and not cell.failure and known(cell.time)]
    return sorted(cells, key=lambda cell: cell.time)


def _time_sentence(summary: RunSummary, row: RowSummary, cell: Cell, names: dict[str, str]) -> str:
    text = f"{names[summary.subject]}: {short(cell.time)} {row.row.unit}"
    others = rivals(summary, row)
    if not others:
        return text + "; nothing to compare it with."
    other = others[0]
    which = ("the next" if row.best_time == summary.subject else "the fastest") + f" ({names[other.arm]})"
    against = other.against or Verdict("not measured", cell.time / other.time if other.time else math.nan)
    tally = Counter(one.against.word for one in others if one.against)
    text += f", {compared(against, which)}."
    if len(others) > 1 and tally:
        words = (("better", "better than"), ("no difference", "no different from"), ("worse", "worse than"))
        parts = [f"{says} {'all' if tally[word] == len(others) else tally[word]}" for word, says in words
                 if tally[word]]
        if parts:
            text += f" Of {len(others)} others it is {and_list(parts)}."
    return text


def _beyond(value: float, best: str) -> str:
    return f"within {percent(value - 1)} of {best}" if value < 2 else f"at {value:.1f} × {best}"


def _standing(row: RowSummary, cell: Cell) -> list[str]:
    """How far the subject is from the row's best, where it is not the best itself."""
    parts = []
    if row.best_time != cell.arm and known(cell.time_ratio):
        found = row.cells[row.best_time].against
        close = found is not None and found.word == "no difference"
        parts.append("not measurably slower than the fastest" if close else _beyond(cell.time_ratio, "the fastest"))
    if row.best_peak != cell.arm and known(cell.peak_ratio):
        parts.append(_beyond(cell.peak_ratio, "the smallest"))
    return parts


def lead_sentence(summary: RunSummary, row: RowSummary, names: dict[str, str]) -> str:
    """What the user of an own program wants to know first."""
    if row.best_time not in names:
        return ""
    text = f"For this program: {names[row.best_time]} is fastest"
    others, cell = rivals(summary, row), row.cells.get(summary.subject)
    if row.best_time == summary.subject and others and others[0].against \
            and others[0].against.word == "no difference":
        text += f" (no measurable difference from {names[others[0].arm]})"
    if row.best_peak in names:
        text += " and smallest" if row.best_peak == row.best_time else f", {names[row.best_peak]} smallest"
    parts = _standing(row, cell) if cell is not None and not cell.failure else []
    return text + (f"; {names[summary.subject]} is {and_list(parts)}" if parts else "") + "."


def _memory_sentence(summary: RunSummary, row: RowSummary, cell: Cell, names: dict[str, str]) -> str:
    if not known(cell.peak_kib):
        return ""
    text = f"Peak memory {memory(cell.peak_kib)}, "
    peers = {arm.name for arm in summary.arms if arm.kind == "peer"}
    others = sorted((one for one in row.cells.values() if one.arm in peers and one.arm != summary.subject
                     and known(one.peak_kib) and not one.failure), key=lambda one: one.peak_kib)
    if not others:
        return text[:-2] + "."
    if row.best_peak == summary.subject:
        times = ratio(others[0].peak_kib / cell.peak_kib)
        text += f"the smallest; the next ({names[others[0].arm]}) has {times} × that"
    elif row.best_peak in names and known(cell.peak_ratio):
        text += f"{ratio(cell.peak_ratio)} × the smallest ({names[row.best_peak]})"
    if known(cell.end_to_live):
        text += f"; at the end of the work {memory(cell.end_kib)}, {short(cell.end_to_live)} × the bytes that live then"
    if known(cell.after_kib):
        text += f"; {memory(cell.after_kib)} one second after everything was freed"
    return text + "."


def noise_sentence(row: RowSummary) -> str:
    if row.again is None or row.again.word == "not measured":
        return "No A/A pair was measured."
    if row.again.word == "no difference":
        text = f"The A/A pair agrees within ±{percent(row.noise)}." if known(row.noise) else "The A/A pair agrees."
    else:
        text = f"The A/A pair differs: ratio {bounds(row.again)}."
    return text + (" The row is noisy: small differences on it mean nothing." if row.noisy else "")


def modes_sentence(row: RowSummary, names: dict[str, str]) -> str:
    """Whose rounds fall into two modes."""
    found = [f"{names.get(cell.arm, cell.arm)} {modes(traits.modes(cell))}" for cell in row.cells.values()
             if traits.modes(cell)]
    return f"Two modes, in {row.row.unit}: {', '.join(found)}. Such a step is mostly the machine's (memory that its " \
           "host fetches late): a verdict stands only if it holds in all modes." if found else ""


def row_sentences(summary: RunSummary, row: RowSummary, names: dict[str, str]) -> list[str]:
    """The row in plain words."""
    cell = row.cells.get(summary.subject)
    subject = names.get(summary.subject, summary.subject)
    if cell is None:
        texts = [f"{subject} took no part in this row."]
    elif cell.failure:
        texts = [f"{subject} failed: {cell.failure}."]
    elif not known(cell.time):
        texts = [f"{subject} has no time on this row.", _memory_sentence(summary, row, cell, names)]
    else:
        texts = [_time_sentence(summary, row, cell, names), _memory_sentence(summary, row, cell, names)]
    texts += [modes_sentence(row, names), noise_sentence(row)]
    texts += [f"{names.get(one.arm, one.arm)} failed: {one.failure}." for one in row.cells.values()
              if one.failure and one.arm != summary.subject]
    return [text for text in texts if text]


def beaten(summary: RunSummary) -> str:
    """On how many rows some other is no worse in time and peak RSS, and better in one."""
    rows = sum(1 for row in summary.ranked if row.dominators)
    return f"Beaten at both time and peak RSS on {rows} of {count(len(summary.ranked), 'row')}"
