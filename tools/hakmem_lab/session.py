# SPDX-License-Identifier: MIT
"""A run: rows × arms × rounds, interleaved, every measurement written at once.

For each row, first every arm once with its memory sampled: that warms up files, finds what crashes, and tells how
much memory the row uses. Then the rounds: in each one all arms run one after the other, in an order drawn anew for
every second round and turned round for the one that follows, so that neither drift nor neighbours favour one. The draw
is the same for every run. A round that uses much memory begins with a warm-up of it (warm.py).
"""
from __future__ import annotations

import concurrent.futures
import dataclasses
import random
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Optional

from . import peers, warm
from .arms import IDEAL, Arm
from .errors import LabError
from .execute import How, Sample, measure
from .records import Run, Writer
from .rows import Row

LATENCY_ROUNDS = 3
RESTING_TOGETHER = 8  # programs that may rest before memory is looked at again while the next one works
POLL = 0.005


@dataclasses.dataclass
class Plan:
    rows: list[Row]
    arms: list[Arm]
    rounds: int
    scale: float = 1.0
    memory: bool = True
    timeout: float = 0  # seconds for one measurement; 0: as the kind of row has it
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)  # rows that cannot be measured, and why

    def rounds_of(self, row: Row) -> int:
        """Rows that time single calls have their own statistics; a few rounds show that they repeat."""
        return min(self.rounds, LATENCY_ROUNDS) if row.info.group == "latency" else self.rounds

    def memory_of(self, row: Row) -> bool:
        return self.memory and row.info.group != "latency"

    def arms_of(self, row: Row) -> list[Arm]:
        return [arm for arm in self.arms if not arm.info.skip and row.base in arm.bases
                and (arm.info.kind != "ideal" or row.ideal)]

    def measurements(self) -> int:
        return sum(len(self.arms_of(row)) * (self.rounds_of(row) + int(self.memory_of(row))) for row in self.rows)


def order(arms: list[Arm], row: str, turn: int) -> list[Arm]:
    """The arms in the order of one round of a row."""
    drawn = list(arms)
    random.Random(f"{row} {turn // 2}").shuffle(drawn)
    return drawn if turn % 2 == 0 else drawn[::-1]


def best_of(samples: list[Sample]) -> Sample:
    """The fastest of the runs of one round, with the values of all; a failure or another output counts before it."""
    failed = [sample for sample in samples if sample.failure]
    if failed:
        return failed[0]
    if len({sample.check for sample in samples}) > 1:
        return Sample(failure="output differs from run to run")
    best = min(samples, key=lambda sample: sample.fields["value"])
    if len(samples) > 1:
        best.fields["values"] = [sample.fields["value"] for sample in samples]
        best.fields["hwm_kib"] = max(sample.fields["hwm_kib"] for sample in samples)
    return best


class Session:
    def __init__(self, plan: Plan, writer: Writer, previous: Optional[Run] = None,
                 step: Callable[[Row, Arm], None] = lambda row, arm: None):
        self.plan = plan
        self.writer = writer
        self.step = step  # called after every measurement, for the progress bar
        self.done = previous.done() if previous else set()
        self.out = {(sample["row"], sample["arm"]) for sample in (previous.of("failure") if previous else [])}
        self.bases: dict[str, peers.Base] = {}
        self.peaks: dict[str, float] = {}  # by row: the highest RSS of any arm so far, KiB
        for sample in previous.samples if previous else []:
            self._note_peak(sample["row"], sample)

    def base(self, name: str) -> "peers.Base":
        if name not in self.bases:
            self.bases[name] = peers.find_base(name)
        return self.bases[name]

    def run(self) -> None:
        started = time.monotonic()
        for row in self.plan.rows:
            arms = self.plan.arms_of(row)
            if self.plan.memory_of(row):
                self._memory(row, arms)
            for turn in range(self.plan.rounds_of(row)):
                self._round(row, order(arms, row.id, turn), turn)
        self.writer.add("end", seconds=round(time.monotonic() - started, 1))

    def _memory(self, row: Row, arms: list[Arm]) -> None:
        """One run of each arm with its memory looked at. They work one after the other; only the rests overlap."""
        wanted = [arm for arm in arms if ("memory", row.id, arm.name, 0) not in self.done
                  and (row.id, arm.name) not in self.out]
        for arm in arms:
            if arm not in wanted:
                self.step(row, arm)
        with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder, \
                concurrent.futures.ThreadPoolExecutor(RESTING_TOGETHER) as pool:
            running = []
            for number, arm in enumerate(wanted):
                resting = Path(folder) / str(number)
                future = pool.submit(self._measure, row, arm, resting)
                while not future.done() and not resting.exists():
                    time.sleep(POLL)
                running.append((arm, future))
            for arm, future in running:
                self._note("memory", row, arm, 0, future.result())
                self.step(row, arm)

    def _round(self, row: Row, arms: list[Arm], turn: int) -> None:
        """Every arm once; where the work is divided, all arms take turns with their parts, there and back, so that a
        slow second meets one part of each rather than all parts of one."""
        wanted = [arm for arm in arms if ("time", row.id, arm.name, turn) not in self.done
                  and (row.id, arm.name) not in self.out]
        samples: dict[str, list[Sample]] = {arm.name: [] for arm in wanted}
        if wanted:
            warm.warm(self.peaks.get(row.id, 0))
        for part in range(row.repeats(self.plan.scale)):
            for arm in wanted if part % 2 == 0 else wanted[::-1]:
                if not any(sample.failure for sample in samples[arm.name]):
                    samples[arm.name].append(self._measure(row, arm, None))
        for arm in wanted:
            self._note("time", row, arm, turn, best_of(samples[arm.name]))
        for arm in arms:
            self.step(row, arm)

    def _measure(self, row: Row, arm: Arm, resting: Optional[Path]) -> Sample:
        how = How(resting is not None, self.plan.scale / row.repeats(self.plan.scale), self.plan.timeout, resting)
        return measure(row, arm.launch(self.base(row.base)), how, ideal=arm.name == IDEAL)

    def _note(self, kind: str, row: Row, arm: Arm, turn: int, sample: Sample) -> None:
        if sample.failure:
            self.out.add((row.id, arm.name))
            self.writer.add("failure", row=row.id, arm=arm.name, round=turn, reason=sample.failure)
        else:
            self._note_peak(row.id, sample.fields)
            self.writer.add(kind, row=row.id, arm=arm.name, round=turn, check=sample.check, **sample.fields)

    def _note_peak(self, row: str, fields: dict[str, Any]) -> None:
        self.peaks[row] = max(self.peaks.get(row, 0), fields.get("hwm_kib") or 0)


def require_same(run: Run, plan: Plan, programs: str) -> None:
    """A run is continued only with the same libraries, workloads, arguments and amounts of work."""
    def libraries(infos) -> dict[str, str]:
        return {info.name: f"{info.sha256} {info.options}" for info in infos if not info.skip}

    def changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
        return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))

    header = run.header
    differing = changed(libraries(header.arms), libraries(arm.info for arm in plan.arms))
    differing += changed({row.id: row.program for row in header.rows}, {row.id: row.info.program for row in plan.rows})
    if (header.scale, header.programs) != (plan.scale, programs):
        differing.append("the workloads")
    if differing:
        raise LabError(f"{run.path} cannot be continued, these are not what they were: {' '.join(differing)}")
