# SPDX-License-Identifier: MIT
"""What of a run is committed: its CSV file, and from that README's short table and picture, and the page of results.

The same CSV gives the same bytes. Each page's part lies between two markers; the rest of the page is left as it is.
"""
from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Optional

from . import place, traits, whole, wording
from .errors import LabError
from .means import ALL, Mean, Means, held, means
from .model import ArmInfo, RunSummary
from .picture import draw
from .results import newest_csv, read_csv, write_csv
from .sheet import clip

__all__ = ["newest_csv", "read_csv", "write_csv", "write_pages", "BEGIN", "END", "README", "RESULTS_PAGE",
           "PICTURE"]

README = place.ROOT / "README.md"
RESULTS_PAGE = place.RESULTS / "README.md"
PICTURE = place.ROOT / "docs" / "lab.svg"
BEGIN, END = "<!-- lab: begin -->", "<!-- lab: end -->"
SHORT = ("mimalloc", "snmalloc", "tcmalloc", "jemalloc", "glibc")  # beside the subject in README's table
MOST_ARMS = 12  # lines of the table, without its two head lines; the slowest beyond that are named below it


def _plain(text: str) -> str:
    """For Markdown: nothing in it is markup."""
    for character in "\\`*_[]|<>":
        text = text.replace(character, "\\" + character if character not in "<>" else f"&#{ord(character)};")
    return text


def _cell(mean: Mean, best_time: float, best_peak: float) -> str:
    if not mean.took_part:
        return wording.NONE

    def one(value: float, best: float) -> str:
        text = wording.ratio(value)
        return f"**{text}**" if wording.known(value) and text == wording.ratio(best) else text
    failed = f" {wording.FAILED}{mean.failures}" if mean.failures else ""
    return f"{one(mean.time, best_time)} / {one(mean.peak, best_peak)}{failed}"


def _least(values: list[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.nan)


def _name(arm: ArmInfo, found: Means, names: dict[str, str], subject: str) -> str:
    text = _plain(names[arm.name])
    text = f"**{text}**" if arm.name == subject else text
    part = found.of(arm.name).rows
    return text if part in (0, found.rows) else f"{text} ({part} of {found.rows} rows)"


def _best(found: Means, group: str, count: int) -> tuple[float, float]:
    """The lowest means of a column; of a group only of those that have figures on all its rows."""
    known = [found.of(arm.name, group) for arm in found.arms]
    known = [mean for mean in known if group == ALL or mean.rows == count]
    return _least([mean.time for mean in known]), _least([mean.peak for mean in known])


def _table(summary: RunSummary, found: Means, arms: list[ArmInfo], names: dict[str, str]) -> list[str]:
    groups = [(ALL, "all rows", found.rows)] + found.groups
    heads = ["Allocator"] + [f"{_plain(title)} ({count})" for _, title, count in groups]
    if found.common < found.rows:
        heads[1] = f"overall ({found.common} of {found.rows})"
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * len(groups) + "|"]
    best = {key: _best(found, key, count) for key, _, count in groups}
    for arm in arms:
        cells = [_cell(found.of(arm.name, key), *best[key]) for key, _, _ in groups]
        lines.append("| " + " | ".join([_name(arm, found, names, summary.subject)] + cells) + " |")
    return lines


def _chosen(found: Means, subject: str) -> tuple[list[ArmInfo], list[ArmInfo]]:
    """The arms of the table, and those that would make it too long: the slowest, but never the subject."""
    rest = [arm for arm in found.arms if arm.name != subject][MOST_ARMS - 1:]
    return [arm for arm in found.arms if arm not in rest], rest


def _conditions(summary: RunSummary) -> str:
    """Machine and rounds in a line."""
    machine = summary.machine
    words = [machine.get("processor", ""), f"{machine.get('cpus', '?')} CPUs", machine.get("memory", ""),
             "virtual machine" if machine.get("virtual") == "yes" else "",
             f"kernel {machine['kernel']}" if "kernel" in machine else "", machine.get("glibc", "")]
    return f"{', '.join(word for word in words if word)}; {wording.count(summary.rounds, 'round')}, " \
           f"{summary.started.split()[0].split('T')[0]}"


def _against_live(summary: RunSummary, names: dict[str, str]) -> list[str]:
    """A sentence on RSS against live bytes; none for results that do not have both."""
    found = held(summary)
    if not found.arms:
        return []
    words = [f"{_plain(names[arm])} {wording.short(peak)} / {wording.short(end)}" for arm, (peak, end) in
             found.arms.items()]
    return [f"RSS / live bytes, geometric means of {wording.count(len(found.rows), 'memory row')} that state their "
            f"live bytes, at the peak / at the end of the work: {', '.join(words)}."]


def _noisy(summary: RunSummary) -> int:
    """The rows of which hakmem's two arms differ by much."""
    return sum(row.noisy for row in summary.ranked)


def _section(summary: RunSummary, csv_link: str) -> list[str]:
    """All allocators, all kinds of work."""
    found, names = means(summary), wording.labels(summary)
    arms, rest = _chosen(found, summary.subject)
    noisy = _noisy(summary)
    text = [f"Measured on {_plain(_conditions(summary))}. [All numbers]({csv_link})."]
    if found.common < found.rows:
        text.append("Overall: the rows complete for all allocators that have figures on three quarters of the rows.")
    text += _against_live(summary, names)
    if rest:
        slow = [f"{_plain(names[arm.name])} {_cell(found.of(arm.name), math.nan, math.nan)}" for arm in rest]
        text.append(f"Slower: {', '.join(slow)}.")
    skipped = [f"{_plain(names[arm.name])} ({_plain(clip(arm.skip, 100))})" for arm in summary.arms if arm.skip]
    if skipped:
        text.append(f"Not measured: {', '.join(skipped)}.")
    if summary.skipped:
        left = [f"{_plain(row)} ({_plain(clip(reason, 100))})" for row, reason in summary.skipped.items()]
        text.append(f"Rows left out: {', '.join(left)}.")
    if noisy:
        verb = "was" if noisy == 1 else "were"
        text.append(f"{noisy} of {wording.count(len(summary.ranked), 'row')} {verb} noisy: small differences "
                    "mean nothing there.")
    modal = [_plain(row.row.id) for row in summary.ranked if traits.has_modes(row)]
    if modal:
        text.append(f"Two modes (a host that fetches memory late, mostly): {', '.join(modal)}.")
    return [BEGIN, f"<!-- Made by the lab from {csv_link}: do not edit. -->",
            "Time / peak memory: geometric means of the ratios to each row's best allocator (1.00: best on every "
            f"row; bold: best of the column; {wording.FAILED}: rows that failed).", "",
            *_table(summary, found, arms, names), "", " ".join(text), END]


def _short_section(summary: RunSummary, csv_link: str, page_link: str, picture_link: str) -> list[str]:
    """README's part: three columns of a few well-known allocators, and the picture."""
    found, names = means(summary), wording.labels(summary)
    arms = [arm for arm in found.arms if arm.name == summary.subject or arm.name in SHORT]
    real = next(((title, count) for key, title, count in found.groups if key == "app"), None)
    heads = ["Allocator", f"Time, {found.common} rows", f"Peak memory, {found.common} rows"]
    heads += [f"{real[0].capitalize()} ({real[1]}): time / peak memory"] if real else []
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for arm in arms:
        mean = found.of(arm.name)
        cells = [_name(arm, found, names, summary.subject), wording.ratio(mean.time), wording.ratio(mean.peak)]
        cells += [_cell(found.of(arm.name, "app"), math.nan, math.nan)] if real else []
        lines.append("| " + " | ".join(cells) + " |")
    noisy = _noisy(summary)
    noise = f"Noisy: {wording.count(noisy, 'row')}; trust the means, not single rows. " if noisy else ""
    return [BEGIN, f"<!-- Made by the lab from {csv_link}: do not edit. -->",
            *lines, "",
            "Geometric means of the ratios to each row's best allocator; 1.00 is best on every row. "
            f"{_plain(_conditions(summary))}. {noise}All {len(found.arms)} allocators and all kinds of work: "
            f"[{page_link}]({page_link}).", "",
            f"![Time and peak memory of each allocator: nearer to the corner is better]({picture_link})", END]


def _replaced(text: str, lines: list[str], path: Path) -> str:
    for marker in (BEGIN, END):
        times = text.count(marker)
        if times != 1:
            raise LabError(f"{path} must have the marker '{marker}' exactly once; it has it {times} times")
    before, rest = text.split(BEGIN)
    if END not in rest:
        raise LabError(f"{path} has the marker '{END}' before '{BEGIN}'")
    return before + "\n".join(lines) + rest.split(END)[1]


def _link(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path.resolve(), start.resolve().parent)).as_posix()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from error


def write_pages(csv_path: Optional[Path] = None, readme: Path = README, page: Path = RESULTS_PAGE,
                picture: Path = PICTURE) -> None:
    """Makes the lab's parts of README and of the page of results anew, and the picture, from the CSV file, by default
    the newest one."""
    csv_path = csv_path or newest_csv()
    summary = read_csv(csv_path)
    if not means(summary).arms:
        raise LabError(f"{csv_path} has no figures to show")
    texts = {page: _replaced(_read(page), _section(summary, _link(csv_path, page)), page),
             readme: _replaced(_read(readme), _short_section(summary, _link(csv_path, readme), _link(page, readme),
                                                             _link(picture, readme)), readme)}
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        whole.write(picture, draw(summary))
        for path, text in texts.items():
            whole.write(path, text)
    except OSError as error:
        raise LabError(f"cannot write {error.filename}: {error.strerror}") from error
