# SPDX-License-Identifier: MIT
"""Is the allocator well? Smoke loads under every profile: no crash, no growth, no NO-GO against the committed result.

Times are compared as ratios to glibc, measured now and in the committed results of the same kind of machine: the
ratio travels between days, the nanoseconds do not.
"""
from __future__ import annotations

import dataclasses
import math
import tempfile
from pathlib import Path
from typing import Callable

from . import arms, machine, micro, peers, records, results, session, stats, summary
from .apps import Launch
from .errors import LabError
from .execute import measure
from .model import ArmInfo, RunSummary
from .rows import Row

PROFILES = ("balanced", "throughput", "low-memory")
REFERENCE = "glibc"
MORE = 4  # growth: peak RSS of this many times the work …
ALLOWED = 1.25  # … is at most this many times as high,
SLACK_KIB = 2048  # give or take one more slab of every class


def growth(short_kib: float, long_kib: float) -> bool:
    return long_kib > short_kib * ALLOWED + SLACK_KIB


def regression(now: RunSummary, then: RunSummary) -> list[str]:
    """Rows where the subject lost ground to the reference since the committed result."""
    problems = []
    old_rows = {row.row.id: row for row in then.rows}
    for row in now.rows:
        old = old_rows.get(row.row.id)
        cell = row.cells.get(REFERENCE)
        if old is None or cell is None or cell.against is None or math.isnan(cell.against.low):
            continue
        pair = [old.cells.get(name) for name in (now.subject, REFERENCE)]
        if any(one is None or not one.high or not one.low for one in pair):
            continue
        worst_then = pair[0].high / pair[1].low
        if cell.against.low > worst_then * (1 + now.threshold) and not row.noisy:
            problems.append(f"{row.row.id}: NO-GO: {cell.against.ratio:.3f} × glibc's time, at least "
                            f"{cell.against.low:.3f}; committed: at most {worst_then:.3f}")
    return problems


def _with_profile(arm: arms.Arm, profile: str) -> arms.Arm:
    info = dataclasses.replace(arm.info, name=f"{arm.name}@{profile}", label=f"{arm.info.label}, {profile}")
    return arms.Arm(info, arm.bases, {**arm.env, "HAKMEM_PROFILE": profile})


def _load(row: Row, launch: Launch, scale: float) -> str:
    """What is wrong with the row on one arm; "" if nothing. A steady load gets more and more work as long as its
    memory grows: one that settles is well."""
    steps = (1, MORE, MORE * MORE) if row.id in micro.steady() else (1,)
    before = math.inf
    for step in steps:
        sample = measure(micro.scaled(row, step * scale), launch)
        if sample.failure:
            return sample.failure
        peak = sample.fields["hwm_kib"]
        if step > 1 and not growth(before, peak):
            return ""
        if step == steps[-1] and step > 1:
            return f"grows with the work: {before} KiB, with {MORE} × the work {peak} KiB"
        before = peak
    return ""


def _growth(rows: list[Row], arm: arms.Arm, scale: float) -> list[str]:
    """Crashes and growth of one profile."""
    launch = arm.launch(peers.find_base("system"))
    found = [(row.id, _load(row, launch, scale)) for row in rows]
    return [f"{row}: {arm.name}: {problem}" for row, problem in found if problem]


def _measure_now(rows: list[Row], found: list[arms.Arm], rounds: int, scale: float) -> RunSummary:
    plan = session.Plan(rows, [found[0], arms.again(found[0]), *found[1:]], rounds, scale, memory=False)
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder:
        path = Path(folder) / records.NAME
        writer = records.Writer(path)
        infos: list[ArmInfo] = [arm.info for arm in plan.arms]
        writer.header(records.Header("health", "", "health", machine.fingerprint(), rounds, stats.THRESHOLD,
                                     arms.SUBJECT, infos, [row.info for row in rows], {}))
        session.Session(plan, writer).run()
        writer.close()
        return summary.summarise(records.Run(path))


def check(rounds: int, scale: float, say: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """Problems, and notes for the reader."""
    rows = [row for row in micro.catalogue() if row.quick and row.info.group != "latency"]
    found = arms.resolve([arms.parse(name, {}) for name in (arms.SUBJECT, REFERENCE)], {}, progress=say)
    if found[0].info.skip:
        raise LabError(f"{found[0].name}: {found[0].info.skip}")
    problems, notes = [], []
    for profile in PROFILES:
        say(f"profile {profile}: {len(rows)} loads")
        problems += _growth(rows, _with_profile(found[0], profile), scale)
    kind = machine.kind(machine.fingerprint())
    committed = results.newest_of(kind)
    if committed is None:
        notes.append(f"no committed result of a {kind}: times are not compared")
        return problems, notes
    say(f"comparing with {committed.name}")
    now = _measure_now(rows, found, rounds, scale)
    notes += [f"{row.row.id}: noisy (A/A ±{row.noise * 100:.1f} %), not judged" for row in now.rows if row.noisy]
    return problems + regression(now, results.read_csv(committed)), notes
