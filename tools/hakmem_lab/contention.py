# SPDX-License-Identifier: MIT
"""What each lock of hakmem costs on a row, by a library built to count it, and what that means for many CPUs."""
from __future__ import annotations

import dataclasses
import json
import os
import re
import statistics
import subprocess
from pathlib import Path
from typing import Callable

from rich.table import Table

from . import place, scaling
from .errors import LabError
from .execute import LONG_TIMEOUT
from .rows import Row

LINE = re.compile(r"^hakmem: lock (\w+) (\d+): taken (\d+), refused (\d+), held (\d+) ns, waited (\d+) ns$", re.M)
CPUS = (64, 256)
MUCH = 0.05  # of a lock's time: above it the lock is named
ONCE = "START"  # taken once in a process, by no operation
OWNER = "OWNER"


@dataclasses.dataclass(frozen=True)
class Lock:
    taken: int
    refused: int
    held_ns: int
    waited_ns: int


@dataclasses.dataclass(frozen=True)
class Count:
    ops: int
    cpu_ns: int
    locks: dict[str, Lock]  # owners together

    @property
    def op_ns(self) -> float:
        return self.cpu_ns / self.ops

    def demands(self) -> list[scaling.Demand]:
        return [scaling.Demand(name, lock.taken / self.ops, lock.held_ns / self.ops, 0 if name == OWNER else 1)
                for name, lock in self.locks.items()]

    def shared(self) -> tuple[str, Lock]:
        """The lock that all CPUs share and that is held longest."""
        found = [(name, lock) for name, lock in self.locks.items() if name != OWNER]
        return max(found, key=lambda one: one[1].held_ns, default=("none", Lock(0, 0, 0, 0)))


def parse(text: str) -> dict[str, Lock]:
    """What the library printed at the end of a process."""
    sums: dict[str, list[int]] = {}
    for name, _, *figures in LINE.findall(text):
        one = sums.setdefault(name, [0, 0, 0, 0])
        for index, figure in enumerate(figures):
            one[index] += int(figure)
    return {name: Lock(*figures) for name, figures in sums.items() if name != ONCE}


def build(say: Callable[[str], None]) -> Path:
    """The library, in a folder of its own; says where the log is if that fails."""
    folder = place.LAB / "contention-build"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    say("building the library that counts")
    with open(log, "w", encoding="utf-8") as file:
        for command in (["cmake", "-S", str(place.ROOT), "-B", str(folder), "-G", "Ninja", "-DHAK_FLAVOUR=release",
                         "-DHAK_CONTENTION=ON", "-DHAK_TESTS=OFF"], ["cmake", "--build", str(folder)]):
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                raise LabError(f"the library could not be built; see {log}")
    return folder / "libhakmem.so"


def count(row: Row, library: Path, scale: float) -> Count:
    name, *arguments = row.arguments(scale)
    try:
        done = subprocess.run([str(place.PROGRAMS / name), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LONG_TIMEOUT, check=False,
                              env={**os.environ, "LD_PRELOAD": str(library), "HAKMEM_OPTIONS": ""})
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{row.id}: no end after {LONG_TIMEOUT} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise LabError(f"{row.id}: exit status {done.returncode}: {last}")
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    locks = parse(done.stderr)
    if not locks:
        raise LabError(f"{row.id}: {library} printed no lock")
    return Count(figures["ops"], figures["cpu_ns"], locks)


def median(counts: list[Count]) -> Count:
    """The run whose CPU time is the median one."""
    middle = statistics.median_low(one.cpu_ns for one in counts)
    return next(one for one in counts if one.cpu_ns == middle)


def named(told: scaling.Prediction) -> str:
    """The locks that many CPUs would find busy, the busiest first; an owner's is its CPU's own."""
    much = sorted(((use, name) for name, use in told.utilisation.items() if use > MUCH and name != OWNER), reverse=True)
    return ", ".join(f"{name} {use:.0%}" for use, name in much) or "none"


def table(found: dict[str, Count]) -> Table:
    """Rows × what they need of locks, and what becomes of that."""
    out = Table(title="locks, and predictions for many CPUs (docs/scaling.md)", title_justify="left",
                header_style="bold")
    for name in ("row", "ns/op", "owners held, ns/op", "refused", "shared lock", "taken/1000 ops",
                 "held, ns/op", "serial share"):
        out.add_column(name, justify="left" if name in ("row", "shared lock") else "right",
                       no_wrap=name == "row")
    for cpus in CPUS:
        out.add_column(f"speed-up {cpus}", justify="right")
        out.add_column(f"above {MUCH:.0%}, {cpus}", justify="left")
    for row, one in found.items():
        name, lock = one.shared()
        owner = one.locks.get(OWNER, Lock(0, 0, 0, 0))
        cells = [row, f"{one.op_ns:.1f}", f"{owner.held_ns / one.ops:.2f}",
                 f"{owner.refused / max(owner.taken, 1):.1%}", name, f"{1000 * lock.taken / one.ops:.3f}",
                 f"{lock.held_ns / one.ops:.4f}", f"{lock.held_ns / one.cpu_ns:.3%}"]
        for cpus in CPUS:
            told = scaling.predict(one.op_ns, one.demands(), cpus)
            cells += [f"{told.speedup:.0f}", named(told)]
        out.add_row(*cells)
    return out
