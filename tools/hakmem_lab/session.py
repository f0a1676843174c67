# SPDX-License-Identifier: MIT
"""A run: rows × arms × rounds, interleaved, every measurement written at once.

For each row, first every arm once with its memory sampled: that warms up files and finds what crashes. Then the
rounds: in each one all arms run one after the other, beginning with another arm each time, and backwards every
second time, so that neither drift nor neighbours favour one.
"""
from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from typing import Callable, Optional

from . import peers
from .arms import IDEAL, Arm
from .errors import LabError
from .execute import Sample, measure
from .records import Run, Writer
from .rows import Row

MEMORY_PARALLEL = 4  # memory runs wait for most of their time


@dataclasses.dataclass
class Plan:
    rows: list[Row]
    arms: list[Arm]
    rounds: int
    scale: float = 1.0
    memory: bool = True
    timeout: float = 0  # seconds for one measurement; 0: as the kind of row has it

    def arms_of(self, row: Row) -> list[Arm]:
        return [arm for arm in self.arms if not arm.info.skip and row.base in arm.bases
                and (arm.info.kind != "ideal" or row.ideal)]

    def measurements(self) -> int:
        return sum(len(self.arms_of(row)) * (self.rounds + int(self.memory)) for row in self.rows)


def order(arms: list[Arm], turn: int) -> list[Arm]:
    """The arms in the order of one round."""
    shift = turn // 2 % max(1, len(arms))
    rotated = arms[shift:] + arms[:shift]
    return rotated if turn % 2 == 0 else rotated[::-1]


class Session:
    def __init__(self, plan: Plan, writer: Writer, previous: Optional[Run] = None,
                 step: Callable[[Row, Arm], None] = lambda row, arm: None):
        self.plan = plan
        self.writer = writer
        self.step = step  # called after every measurement, for the progress bar
        self.done = previous.done() if previous else set()
        self.out: set[tuple[str, str]] = set()  # (row, arm) that failed
        self.checks: dict[str, str] = {}
        self.bases: dict[str, object] = {}
        for sample in previous.samples if previous else []:
            if sample["kind"] == "failure":
                self.out.add((sample["row"], sample["arm"]))
            elif sample.get("check"):
                self.checks.setdefault(sample["row"], sample["check"])

    def base(self, name: str):
        if name not in self.bases:
            self.bases[name] = peers.find_base(name)
        return self.bases[name]

    def run(self) -> None:
        started = time.monotonic()
        for row in self.plan.rows:
            arms = self.plan.arms_of(row)
            if self.plan.memory:
                self._memory(row, arms)
            for turn in range(self.plan.rounds):
                for arm in order(arms, turn):
                    self._once(row, arm, turn)
        self.writer.add("end", seconds=round(time.monotonic() - started, 1))

    def _memory(self, row: Row, arms: list[Arm]) -> None:
        """One run of each arm with its memory looked at; together, because times do not count here."""
        wanted = [arm for arm in arms if ("memory", row.id, arm.name, 0) not in self.done
                  and (row.id, arm.name) not in self.out]
        for arm in arms:
            if arm not in wanted:
                self.step(row, arm)
        parallel = MEMORY_PARALLEL if row.info.threads == 1 and row.app is None and not row.command else 1
        with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
            for arm, sample in zip(wanted, pool.map(lambda arm: self._measure(row, arm, True), wanted)):
                self._note("memory", row, arm, 0, sample)
                self.step(row, arm)

    def _once(self, row: Row, arm: Arm, turn: int) -> None:
        if (row.id, arm.name) not in self.out and ("time", row.id, arm.name, turn) not in self.done:
            self._note("time", row, arm, turn, self._measure(row, arm, False))
        self.step(row, arm)

    def _measure(self, row: Row, arm: Arm, memory: bool) -> Sample:
        return measure(row, arm.launch(self.base(row.base)), ideal=arm.name == IDEAL, memory=memory,
                       scale=self.plan.scale, timeout=self.plan.timeout)

    def _note(self, kind: str, row: Row, arm: Arm, turn: int, sample: Sample) -> None:
        failure = sample.failure
        if not failure and sample.check and self.checks.setdefault(row.id, sample.check) != sample.check:
            failure = "output differs"
        if failure:
            self.out.add((row.id, arm.name))
            self.writer.add("failure", row=row.id, arm=arm.name, round=turn, reason=failure)
        else:
            self.writer.add(kind, row=row.id, arm=arm.name, round=turn, check=sample.check, **sample.fields)


def require_same_arms(done: Run, plan: Plan) -> None:
    """A run is continued only with the same libraries."""
    before = {arm.name: arm.sha256 for arm in done.header.arms if not arm.skip}
    now = {arm.name: arm.info.sha256 for arm in plan.arms if not arm.info.skip}
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        raise LabError(f"{done.path} cannot be continued: other libraries than then: {' '.join(changed)}")
