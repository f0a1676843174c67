# SPDX-License-Identifier: MIT
"""From measurements to what is printed: medians, ratios to the best of the row, verdicts, means."""
from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Optional

from . import means, stats, traits
from .model import ArmInfo, Cell, Latency, RowInfo, RowSummary, RunSummary, Verdict
from .records import Run

REST_MS = 1000  # how long a workload waits before it looks at what is left (bench_finish)
NOISY = 2  # noise of more than this many thresholds makes a row noisy


def _median_of(samples: list[dict[str, Any]], key: str) -> Optional[float]:
    values = [sample[key] for sample in samples if sample.get(key) is not None]
    return stats.median(values) if values else None


def working_average(curve: list[tuple[float, float]], rest_ms: float) -> Optional[float]:
    """RSS averaged over time, without the rest at the end."""
    curve = [(at, kib) for at, kib in curve if kib > 0]
    if len(curve) < 2:
        return None
    end = max(curve[-1][0] - rest_ms, curve[1][0])
    total = 0.0
    for (at, kib), (following, _) in zip(curve, curve[1:]):
        total += kib * max(0.0, min(following, end) - min(at, end))
    return total / (end - curve[0][0])


def _cell(arm: ArmInfo, times: list[dict[str, Any]], memory: list[dict[str, Any]], failure: str) -> Cell:
    cell = Cell(arm.name, rounds=len(times), failure=failure)
    if failure:
        return cell
    values = [sample["value"] for sample in times]
    if values:
        cell.time = stats.median(values)
        cell.low, cell.high = stats.interval(values)
        cell.spread = stats.spread(values)
        cell.mode_low, cell.mode_high = stats.modes(values) or (None, None)
    both = times + memory
    cell.peak_kib = _median_of(times, "hwm_kib") or _median_of(memory, "hwm_kib")
    cell.minflt = _median_of(times or memory, "minflt")
    per_op = [sample["minflt"] / sample["ops"] for sample in times or memory
              if sample.get("ops") and sample.get("minflt") is not None]
    cell.faults_per_op = stats.median(per_op) if per_op else None
    cpu = _median_of(times, "cpu_ns")
    cell.cpu_ms = cpu / 1e6 if cpu is not None else None
    cell.average_kib = _median_of(memory, "average_kib")
    cell.after_kib = _median_of(memory, "after_kib")
    if cell.after_kib is not None:
        cell.average_kib = working_average(memory[0].get("curve", []), REST_MS) or cell.average_kib
    live = _median_of(both, "live_peak")
    if live and cell.peak_kib:
        cell.peak_to_live = cell.peak_kib * 1024 / live
    cell.end_kib = _median_of(times, "rss_live_kib") or _median_of(memory, "rss_live_kib")
    live = _median_of(both, "live_end")
    if live and cell.end_kib:
        cell.end_to_live = cell.end_kib * 1024 / live
    if memory and memory[0].get("curve"):
        cell.curve = [(float(at), float(kib)) for at, kib in memory[0]["curve"]]
    return cell


def _rank(row: RowSummary, arms: dict[str, ArmInfo]) -> None:
    """Ratios to the row's best; ideal and the second A/A arm are no candidates."""
    ranked = [cell for cell in row.cells.values() if arms[cell.arm].kind in ("subject", "peer") and not cell.failure]
    timed = [cell for cell in ranked if cell.time]
    sized = [cell for cell in ranked if cell.peak_kib]
    if timed:
        best = min(timed, key=lambda cell: cell.time)
        row.best_time = best.arm
        for cell in row.cells.values():
            cell.time_ratio = cell.time / best.time if cell.time else None
    if sized:
        best = min(sized, key=lambda cell: cell.peak_kib)
        row.best_peak = best.arm
        for cell in row.cells.values():
            cell.peak_ratio = cell.peak_kib / best.peak_kib if cell.peak_kib else None


def accepted_check(checks: dict[str, set[str]], arms: dict[str, ArmInfo]) -> str:
    """The right output of a row, by the vote of its allocators; the second arm of an A/A pair and the ideal one have no
    vote. If the vote is tied, what the C library's own malloc gives is right."""
    votes: dict[str, int] = defaultdict(int)
    for name, found in checks.items():
        if len(found) == 1 and arms[name].kind in ("subject", "peer"):
            votes[next(iter(found))] += 1
    if not votes:
        return ""
    most = max(votes.values())
    leading = sorted(check for check, count in votes.items() if count == most)
    of_libc = [check for name in ("glibc", "glibc-newest") for check in checks.get(name, ()) if check in leading]
    return (of_libc or leading)[0]


def _failure(failures: list[dict[str, Any]], checks: set[str], accepted: str) -> str:
    if failures:
        return failures[0]["reason"]
    return "output differs" if checks - {accepted} else ""


def _in_all_modes(found: Verdict, mine: Cell, other: Cell, threshold: float) -> Verdict:
    """Not by the mode that the rounds happened to meet."""
    ends = [traits.modes(cell) or (cell.time, cell.time) for cell in (mine, other)]
    return stats.in_all_modes(found, *ends, threshold) if all(end[0] for end in ends) else found


def dominates(cell: Cell) -> bool:
    """Whether the subject is beaten by this arm at both: no better in time nor in peak, and measurably worse in one."""
    words = {found.word if found else "not measured" for found in (cell.against, cell.peak_against)}
    return words in ({"worse"}, {"worse", "no difference"})


def _row(info: RowInfo, samples: dict[tuple[str, str], list[dict[str, Any]]], arms: dict[str, ArmInfo], subject: str,
         threshold: float) -> RowSummary:
    cells: dict[str, Cell] = {}
    rounds: dict[str, dict[int, float]] = {}
    peaks: dict[str, dict[int, float]] = {}
    checks = {name: {sample["check"] for kind in ("time", "memory") for sample in samples.get((kind, name), [])
                     if sample.get("check")} for name in arms}
    accepted = accepted_check(checks, arms)
    for name, arm in arms.items():
        times, memory = samples.get(("time", name), []), samples.get(("memory", name), [])
        failures = samples.get(("failure", name), [])
        if times or memory or failures:
            failure = _failure(failures, checks[name], accepted)
            cells[name] = _cell(arm, times, memory, failure)
            rounds[name] = {} if failure else {sample["round"]: sample["value"] for sample in times}
            peaks[name] = {number: sample["hwm_kib"] for sample in times if (number := sample["round"]) in rounds[name]
                           and sample.get("hwm_kib")}
    row = RowSummary(info, cells)
    _rank(row, arms)
    for name, cell in cells.items():
        if arms[name].kind == "again":
            twin = rounds.get(name.rsplit("~", 1)[0], {})
            row.again = stats.compare(rounds[name], twin, threshold)
            row.noise = stats.noise(stats.paired(rounds[name], twin))
        elif name != subject and subject in rounds:
            cell.against = _in_all_modes(stats.compare(rounds[subject], rounds[name], threshold), cells[subject], cell,
                                         threshold)
            cell.peak_against = stats.compare(peaks[subject], peaks[name], threshold)
            if arms[name].kind == "peer" and dominates(cell):
                row.dominators.append(name)
    if row.again is not None and row.again.word != "not measured":
        row.noisy = row.again.word != "no difference" or row.noise > NOISY * threshold
    return row


def _latency(samples: list[dict[str, Any]]) -> list[Latency]:
    """Of the runs of one arm on one row: per percentile the median of the runs, histograms added up."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for sample in samples:
        if sample.get("latency"):
            groups[sample["row"], sample["arm"]].append(sample)
    result = []
    for (row, arm), runs in groups.items():
        both = [run["latency"]["both"] for run in runs]
        counts: dict[float, int] = defaultdict(int)
        for run in runs:
            for upper, count in run.get("histogram", []):
                counts[float(upper)] += int(count)
        result.append(Latency(row, arm, {key: stats.median([one[key] for one in both]) for key in both[0]},
                              sorted(counts.items())))
    return result


def summarise(run: Run) -> RunSummary:
    header = run.header
    arms = {arm.name: arm for arm in header.arms if not arm.skip}
    by_row: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for sample in run.samples:
        by_row[sample["row"]][sample["kind"], sample["arm"]].append(sample)
    rows = [_row(info, by_row[info.id], arms, header.subject, header.threshold) for info in header.rows
            if info.id in by_row]
    found = RunSummary(id=header.id, started=header.started, tier=header.tier, machine=header.machine,
                       rounds=header.rounds, threshold=header.threshold, subject=header.subject, arms=header.arms,
                       rows=rows, means=[], latency=_latency(run.samples), complete=run.complete,
                       skipped=header.skipped, parts=header.parts)
    ranked = [arm for arm in arms.values() if arm.kind in ("subject", "peer")]
    common = means.common_rows(found.ranked, [arm.name for arm in ranked])
    found.means = [means.arm_summary(found.ranked, common, arm.name) for arm in ranked]
    return found
