# SPDX-License-Identifier: MIT
"""bench/results/*.csv: one file per release and kind of machine, from which README's table and picture are made.

    # key: value                      machine, versions, method, rows left out: what is needed to read the file
    row,group,title,arm,label,…       one line per row and allocator; the second arm of the A/A pair too

The verdict is the subject's against the line's arm; on the subject's own line it is the A/A pair's. What the file
does not hold: curves, latencies, descriptions of the rows, paths of this machine.
"""
from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any, Optional

from . import machine, place, stats, whole
from .errors import LabError
from .model import ArmInfo, ArmSummary, Cell, RowInfo, RowSummary, RunSummary, Verdict

COLUMNS = ("row group title arm label rounds metric unit time low high time_ratio peak_kib peak_ratio average_kib "
           "after_kib peak_to_live end_kib end_to_live minflt faults_per_op cpu_ms mode_low mode_high verdict "
           "verdict_ratio verdict_low verdict_high noisy failure").split()
LATER = ("end_kib", "end_to_live", "faults_per_op", "mode_low", "mode_high")  # columns that older files do not have
NUMBERS = ("time low high time_ratio peak_kib peak_ratio average_kib after_kib peak_to_live end_kib end_to_live minflt "
           "faults_per_op cpu_ms mode_low mode_high").split()
PUBLIC = "label kind version sha256 base options flags env skip".split()  # of an arm; its library is a path of ours
MEANS = {"rows": int, "time_mean": float, "peak_mean": float, "first": int, "failures": int}
ADDRESS = re.compile(r"\b\w+://\S+|\b(?:[\w-]+\.)+(?:org|com|net|io|dev)\b(?:[:/]\S*)?")
PATH = re.compile(r"(?<![\w.…])/(?:\w[\w.+-]*/)+")
METHOD = (f"rounds interleave all allocators; time: median of the rounds, with its {stats.LEVEL * 100:.0f} % interval; "
          "mode_low, mode_high: where the rounds fall into two modes; "
          "verdict: of the subject against the line's allocator, from the ratios within rounds, on the subject's own "
          "line of the A/A pair; RSS in KiB; cpu_ms: CPU time, median of the rounds")
PARTS = "; a round's value is the fastest of {} short runs where the work can be divided"


def public(text: str) -> str:
    """One line without this machine's paths and without addresses."""
    text = " ".join(str(text).split()).replace(str(place.LAB), "build/lab").replace(str(place.ROOT) + "/", "")
    return PATH.sub("…/", ADDRESS.sub("(an address)", text))


def text_of(value: Optional[float]) -> str:
    """Six significant digits without an exponent; nothing for no value."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{float(f'{value:.6g}'):.12f}".rstrip("0").rstrip(".")


def file_name(summary: RunSummary) -> str:
    subject = next((arm for arm in summary.arms if arm.name == summary.subject), None)
    if subject is None or not subject.version:
        raise LabError(f"the run says no version of {summary.subject}: it cannot be published")
    try:
        return f"{subject.version}-{machine.kind(summary.machine)}.csv"
    except KeyError as error:
        raise LabError(f"the run does not say on which machine it was made: no {error}") from error


def _method(summary: RunSummary) -> str:
    return METHOD + (PARTS.format(summary.parts) if summary.parts > 1 else "")


def _head(summary: RunSummary) -> list[str]:
    pairs: list[tuple[str, Any]] = [
        ("id", summary.id), ("started", summary.started), ("tier", summary.tier), ("subject", summary.subject),
        ("rounds", summary.rounds), ("threshold", text_of(summary.threshold)), ("method", _method(summary))]
    pairs += [(f"machine.{key}", value) for key, value in summary.machine.items()]
    for arm in summary.arms:
        pairs += [(f"arm.{arm.name}.{key}", getattr(arm, key)) for key in PUBLIC if getattr(arm, key)]
    for mean in summary.means:
        words = [f"{key}={text_of(float(getattr(mean, key)))}" for key in MEANS]
        pairs.append((f"mean.{mean.name}", " ".join(words)))
    pairs += [(f"skipped.{row}", reason) for row, reason in summary.skipped.items()]
    return [f"# {public(key)}: {public(value)}" for key, value in pairs]


def _line(summary: RunSummary, row: RowSummary, cell: Cell, labels: dict[str, str]) -> dict[str, str]:
    info, found = row.row, row.again if cell.arm == summary.subject else cell.against
    line = {"row": info.id, "group": info.group, "title": info.title, "arm": cell.arm,
            "label": labels.get(cell.arm, cell.arm), "rounds": str(cell.rounds),
            "metric": info.metric, "unit": info.unit, "noisy": "1" if row.noisy else "0",
            "failure": cell.failure}
    line.update({key: text_of(getattr(cell, key)) for key in NUMBERS})
    if found:
        line.update(verdict=found.word, verdict_ratio=text_of(found.ratio), verdict_low=text_of(found.low),
                    verdict_high=text_of(found.high))
    return {key: public(value) for key, value in line.items()}


def write_csv(summary: RunSummary, folder: Path = place.RESULTS) -> Path:
    """Writes the run's file and returns its path; a file of the same version and kind of machine is replaced."""
    if not summary.complete or not summary.rows:
        raise LabError(f"run {summary.id} is not complete: it is not published")
    if summary.tier not in ("full", "quick"):
        raise LabError(f"run {summary.id} is of chosen rows or programs of your own: it is not published")
    path = folder / file_name(summary)
    labels = {arm.name: arm.label for arm in summary.arms}
    text = io.StringIO("\n".join(_head(summary)) + "\n", newline="")
    text.seek(0, io.SEEK_END)
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in summary.ranked:
        writer.writerows(_line(summary, row, cell, labels) for cell in row.cells.values())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        whole.write(path, text.getvalue())
    except OSError as error:
        raise LabError(f"cannot write {path}: {error.strerror}") from error
    return path


def _number(text: str) -> Optional[float]:
    return float(text) if text else None


def _verdict(line: dict[str, str], rounds: int) -> Optional[Verdict]:
    if not line["verdict"]:
        return None
    values = [_number(line[key]) for key in ("verdict_ratio", "verdict_low", "verdict_high")]
    return Verdict(line["verdict"], *[math.nan if value is None else value for value in values], rounds)


def _cell(line: dict[str, str], subject: str) -> Cell:
    cell = Cell(line["arm"], int(line["rounds"]), failure=line["failure"])
    for key in NUMBERS:
        setattr(cell, key, _number(line.get(key, "")))
    cell.against = None if cell.arm == subject else _verdict(line, cell.rounds)
    return cell


def _best(row: RowSummary, key: str, kinds: dict[str, str]) -> str:
    known = [(getattr(cell, key), name) for name, cell in row.cells.items()
             if getattr(cell, key) is not None and kinds.get(name) in ("subject", "peer")]
    return min(known)[1] if known else ""


def _rows(lines: list[dict[str, str]], subject: str, kinds: dict[str, str]) -> list[RowSummary]:
    rows: dict[str, RowSummary] = {}
    for line in lines:
        if line["row"] not in rows:
            info = RowInfo(line["row"], line["group"], line["title"], "", line["metric"], line["unit"])
            rows[line["row"]] = RowSummary(info, {}, noisy=line["noisy"] == "1")
        row, cell = rows[line["row"]], _cell(line, subject)
        row.cells[cell.arm] = cell
        if cell.arm == subject:
            row.again = _verdict(line, cell.rounds)
            row.noise = max(abs(1 - row.again.low), abs(row.again.high - 1)) if row.again else 0.0
    for row in rows.values():
        row.best_time, row.best_peak = _best(row, "time", kinds), _best(row, "peak_kib", kinds)
    return list(rows.values())


def _arms(head: dict[str, str]) -> list[ArmInfo]:
    arms: dict[str, ArmInfo] = {}
    for key, value in _below(head, "arm.").items():
        name, _, what = key.rpartition(".")
        if what in PUBLIC:
            setattr(arms.setdefault(name, ArmInfo(name, name)), what, value)
    return list(arms.values())


def _below(head: dict[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in head.items() if key.startswith(prefix)}


def _mean(name: str, text: str) -> ArmSummary:
    words = dict(word.split("=", 1) for word in text.split())
    return ArmSummary(name, **{key: kind(words[key] or "nan") for key, kind in MEANS.items()})


def _read(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    head: dict[str, str] = {}
    try:
        text = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from error
    at = 0
    while at < len(text) and text[at].startswith("# "):
        key, _, value = text[at][2:].partition(": ")
        head[key] = value
        at += 1
    reader = csv.DictReader(text[at:])
    names = list(reader.fieldnames or [])
    if names != [name for name in COLUMNS if name in names or name not in LATER]:
        raise LabError(f"{path} is no results file of the lab: its columns are not {','.join(COLUMNS)}")
    lines = list(reader)
    if any(None in line or None in line.values() for line in lines):
        raise LabError(f"{path} is no results file of the lab, or damaged: a line has another number of columns")
    return head, lines


def read_csv(path: Path) -> RunSummary:
    """The run as far as the file holds it."""
    head, lines = _read(path)
    try:
        arms = _arms(head)
        subject = head["subject"]
        return RunSummary(
            id=head["id"], started=head["started"], tier=head["tier"], rounds=int(head["rounds"]), subject=subject,
            threshold=float(head["threshold"]), arms=arms,
            machine=_below(head, "machine."), rows=_rows(lines, subject, {arm.name: arm.kind for arm in arms}),
            means=[_mean(name, text) for name, text in _below(head, "mean.").items()],
            skipped=_below(head, "skipped."))
    except (KeyError, ValueError, TypeError) as error:
        raise LabError(f"{path} is no results file of the lab, or damaged: {error}") from error


def newest_csv(folder: Path = place.RESULTS) -> Path:
    """The file of the run that began last, whatever the files' times say; of two at once the last by name."""
    files = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    if not files:
        raise LabError(f"there is no results file (*.csv) in {folder}: publish a run first")
    return max(files, key=lambda path: (_read(path)[0].get("started", ""), path.name))


def newest_of(kind: str, folder: Path = place.RESULTS) -> Optional[Path]:
    """The newest file of one kind of machine; None if there is none."""
    files = sorted(folder.glob(f"*-{kind}.csv")) if folder.is_dir() else []
    return max(files, key=lambda path: (_read(path)[0].get("started", ""), path.name), default=None)
