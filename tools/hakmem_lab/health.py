# SPDX-License-Identifier: MIT
"""Is the allocator well? Smoke loads under every profile: no crash, no wrong output, no growth, no NO-GO against the
committed result.

Times are compared as ratios to glibc, measured now and in the committed results of the same kind of machine: the
ratio travels between days, the nanoseconds do not.
"""
from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Callable, Optional

from . import arms, machine, micro, peers, place, prepare, records, results, session, stats, summary, traits, wording
from .apps import Launch
from .errors import LabError
from .execute import LONG_TIMEOUT, How, measure
from .model import RowSummary, RunSummary
from .rows import Row

REFERENCE = "glibc"
MORE = 4  # growth: peak RSS of this many times the work …
ALLOWED = 1.25  # … is at most this many times as high,
SLACK_KIB = 2048  # give or take one more slab of every class
MOST_WORK = {"debug": 0.01}  # a small block is two system calls there, some hundred times the time


def growth(short_kib: float, long_kib: float) -> bool:
    return long_kib > short_kib * ALLOWED + SLACK_KIB


def bar(old: RowSummary, noise: float, subject: str, threshold: float) -> Optional[float]:
    """The ratio to the reference from which on a row is worse than committed; what the machine does to an A/A pair,
    now and then, is added. None: there is nothing to compare with."""
    pair = [old.cells.get(name) for name in (subject, REFERENCE)]
    if any(one is None or not one.time for one in pair):
        return None
    noises = [value for value in (noise, old.noise) if not math.isnan(value)]
    return pair[0].time / pair[1].time * (1 + threshold + sum(noises))


def regression(now: RunSummary, then: RunSummary) -> list[str]:
    """Rows that failed, or where the subject lost ground to the reference since the committed result."""
    problems = []
    old_rows = {row.row.id: row for row in then.rows}
    for row in now.rows:
        problems += [f"{row.row.id}: {name}: {cell.failure}" for name, cell in row.cells.items() if cell.failure]
        against = row.cells[REFERENCE].against if REFERENCE in row.cells else None
        limit = bar(old_rows[row.row.id], row.noise, now.subject, now.threshold) if row.row.id in old_rows else None
        if against is not None and limit is not None and against.word != "noisy" and against.low > limit:
            problems.append(f"{row.row.id}: NO-GO: {against.ratio:.3f} × {REFERENCE}'s time, at least "
                            f"{against.low:.3f}; committed, with all noise: at most {limit:.3f}")
    return problems


def _load(row: Row, launch: Launch, right: str, scale: float) -> str:
    """What is wrong with the row on one arm; "" if nothing. A steady load gets more and more work as long as its
    memory grows: one that settles is well."""
    steps = (1, MORE, MORE * MORE) if row.id in micro.steady() else (1,)
    before = math.inf
    for step in steps:
        sample = measure(micro.scaled(row, step * scale), launch, How(timeout=LONG_TIMEOUT))
        if sample.failure:
            return sample.failure
        if step == 1 and sample.check != right:
            return f"output differs from that on {REFERENCE}"
        peak = sample.fields["hwm_kib"]
        if step > 1 and not growth(before, peak):
            return ""
        if step == steps[-1] and step > 1:
            return f"grows with the work: {before} KiB, with {MORE} × the work {peak} KiB"
        before = peak
    return ""


def profiles(rows: list[Row], scale: float, say: Callable[[str], None]) -> list[str]:
    """Crashes, wrong output and growth under each profile."""
    base = peers.find_base("system")
    reference = arms.resolve([arms.parse(REFERENCE, {})], {})[0].launch(base)
    scales = {profile: min(scale, MOST_WORK.get(profile, scale)) for profile in arms.profile_names()}
    right = {(row.id, amount): measure(micro.scaled(row, amount), reference, How(timeout=LONG_TIMEOUT)).check
             for row in rows for amount in set(scales.values())}
    problems = []
    for profile, amount in scales.items():
        say(f"profile {profile}: {len(rows)} loads")
        arm = arms.resolve([arms.parse(f"{arms.SUBJECT}@{profile}", {})], {})[0]
        found = [(row.id, _load(row, arm.launch(base), right[row.id, amount], amount)) for row in rows]
        problems += [f"{row}: {arm.name}: {problem}" for row, problem in found if problem]
    return problems


def _measure_now(rows: list[Row], found: list[arms.Arm], rounds: int, scale: float) -> RunSummary:
    plan = session.Plan(rows, [found[0], arms.again(found[0]), *found[1:]], rounds, scale, memory=False)
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder:
        path = Path(folder) / records.NAME
        head = records.Header("health", "", "health", machine.fingerprint(), rounds, stats.THRESHOLD, arms.SUBJECT,
                              [arm.info for arm in plan.arms], [row.info for row in rows], {}, plan.scale,
                              programs=place.PROGRAMS.name)
        writer = records.Writer(path, head)
        session.Session(plan, writer).run()
        writer.close()
        return summary.summarise(records.Run(path))


def check(rounds: int, scale: float, say: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """Problems, and notes for the reader."""
    rows = [row for row in micro.catalogue() if row.quick and row.info.group != "latency"]
    found = arms.resolve([arms.parse(name, {}) for name in (arms.SUBJECT, REFERENCE)], {}, progress=say)
    if found[0].info.skip:
        raise LabError(f"{found[0].name}: {found[0].info.skip}")
    problems, notes = profiles(rows, scale, say), []
    kind = machine.kind(machine.fingerprint())
    committed = results.newest_of(kind)
    if committed is None or scale != 1:
        why = f"no committed result of a {kind}" if committed is None else "other amounts of work than committed"
        notes.append(f"{why}: times are not compared")
        return problems, notes
    say(f"comparing with {committed.name}")
    now = _measure_now(rows, found, rounds, prepare.WORK["full"])
    notes += [f"{row.row.id}: noisy (A/A ±{row.noise * 100:.1f} %), a smaller loss cannot be seen" for row in now.rows
              if row.noisy]
    notes += [wording.modes_sentence(row, {}).replace("Two modes", f"{row.row.id}: two modes", 1) for row in now.rows
              if traits.has_modes(row)]
    return problems + regression(now, results.read_csv(committed)), notes
