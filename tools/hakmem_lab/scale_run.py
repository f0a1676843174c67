# SPDX-License-Identifier: MIT
"""Throughput from one thread up to as many as there are CPUs, for every allocator of a bundle (scale_bundle.py).

`./hakmem lab scale` calls this on a bundle that it has just made, scale.py of an unpacked bundle on any other machine.
That one may have no packages, so this file and those it imports need only the standard library of Python 3.8.
Each sample is written at once, tables and picture after every repetition: what was measured survives a cut.
"""
from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import machine, scale_show
from .errors import LabError, UsageError, unknown
from .model import ArmInfo
from .scale_show import COLUMNS, RUN, SAMPLES

PLAN = "plan.json"
QUOTA = "/sys/fs/cgroup/cpu.max"
WANTED_REPETITIONS = 3
SLOWER = 1.5  # other allocators' time over the subject's, start and set-up included, when the time is divided
SHORTEST, LONGEST = 0.1, 1.0  # seconds of a measurement
TIMEOUT = 30  # seconds
MEMORY_PART = 0.7  # of what is available: a row that would need more is not measured with so many threads


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    title: str
    argv: List[str]  # "T": the number of threads, "N*": a thread's work of about a second
    least: int = 1
    most: int = 1024

    def amount(self) -> int:
        return next(int(word[:-1]) for word in self.argv if word.endswith("*"))

    def arguments(self, threads: int, amount: int) -> List[str]:
        return [str(threads) if word == "T" else str(amount) if word.endswith("*") else word for word in self.argv]


@dataclasses.dataclass
class Options:
    minutes: float = 8
    threads: List[int] = dataclasses.field(default_factory=list)
    rows: List[str] = dataclasses.field(default_factory=list)
    arms: List[str] = dataclasses.field(default_factory=list)
    repetitions: int = 0  # as many as the time allows
    seconds: float = 0  # of a measurement; 0: as the time allows
    timeout: float = TIMEOUT  # after which a measurement counts as hung


@dataclasses.dataclass
class Plan:
    folder: Path
    arms: List[ArmInfo]  # the subject, the same again, the others
    rows: List[Row]


Cell = Tuple[Row, int]  # with so many threads


def load(folder: Path) -> Plan:
    try:
        said = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{folder} is no bundle: {error}") from error
    if re.search(r"[\s:]", str(folder)):
        raise LabError(f"a library in a folder with a blank or a colon cannot be preloaded: {folder}")
    return Plan(folder, [ArmInfo(**arm) for arm in said["arms"]], [Row(**row) for row in said["rows"]])


def _chosen(what: str, everything: list, names: List[str], name) -> list:
    for word in names:
        if word not in map(name, everything):
            raise unknown(what, word, map(name, everything))
    return [one for one in everything if not names or name(one) in names]


def cpus() -> int:
    """That this process may use, of a control group's share, too."""
    count = len(os.sched_getaffinity(0))
    share = re.fullmatch(r"(\d+) (\d+)", _read(QUOTA))
    return min(count, math.ceil(int(share.group(1)) / int(share.group(2)))) if share else count


def thread_counts(most: int) -> List[int]:
    """Powers of two, and the number of CPUs."""
    counts = [1]
    while 2 * counts[-1] < most:
        counts.append(2 * counts[-1])
    return counts + [most] if most > 1 else counts


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def description() -> Dict[str, str]:
    """The machine, and when this is."""
    topology = [path / "topology" for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*")]
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', _read("/etc/os-release"), re.M)
    return {**machine.fingerprint(),
            "cores": str(len({_read(f"{path}/thread_siblings_list") for path in topology} - {""}) or "unknown"),
            "sockets": str(len({_read(f"{path}/physical_package_id") for path in topology} - {""}) or "unknown"),
            "NUMA nodes": str(len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or "unknown"),
            "CPU quota": _read(QUOTA) or "unknown",
            "load before": _read("/proc/loadavg") or "unknown",
            "system": system.group(1) if system else "unknown", "python": platform.python_version(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def _environment(folder: Path, arm: ArmInfo) -> Dict[str, str]:
    """Nothing of the caller's may steer an allocator. `support` has the libraries that allocators need beside glibc."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "LD_LIBRARY_PATH": str(folder / "support")}
    env.update(word.split("=", 1) for word in arm.env.split())
    if arm.options:
        env["HAKMEM_OPTIONS"] = arm.options
    if arm.library:
        env["LD_PRELOAD"] = str(folder / arm.library)
    return env


def _served(folder: Path, arm: ArmInfo, origin: str) -> bool:
    """Whether the program's malloc was the arm's."""
    if arm.library:
        return os.path.realpath(origin) == os.path.realpath(folder / arm.library)
    return os.path.basename(origin).startswith("libc.so")


def measure(folder: Path, row: Row, threads: int, amount: int, arm: ArmInfo, timeout: float) -> Dict[str, Any]:
    """One run: the fields of its sample, or "failure" alone."""
    program, *arguments = row.arguments(threads, amount)
    try:
        done = subprocess.run([str(folder / "bin" / program), *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(folder, arm),
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failure": f"no end after {timeout:.0f} s"}
    except OSError as error:
        raise LabError(f"cannot start {program}: {error.strerror}") from error
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if any("cannot be preloaded" in line for line in said):  # the loader goes on without it
        return {"failure": f"the library cannot be preloaded: {said[0][:200]}"}
    if done.returncode != 0:
        return {"failure": f"status {done.returncode}: {said[-1][:200] if said else ''}"}
    try:
        found = json.loads(done.stdout.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"failure": "printed no result line"}
    if not _served(folder, arm, found["malloc"]):
        return {"failure": f"malloc came from {os.path.basename(found['malloc'])}"}
    return {key: found[key] for key in COLUMNS if key in found}


def available_kib() -> int:
    found = re.search(r"^MemAvailable:\s*(\d+)", _read("/proc/meminfo"), re.M)
    return int(found.group(1)) if found else sys.maxsize


class Session:
    def __init__(self, plan: Plan, out: Path, options: Options):
        self.plan, self.out, self.options = plan, out, options
        self.started = time.monotonic()
        counts = sorted(set(options.threads)) or thread_counts(cpus())
        self.cells: List[Cell] = [(row, count) for row in plan.rows for count in counts
                                  if row.least <= count <= row.most]
        share = options.minutes * 60 / (max(len(self.cells), 1) * len(plan.arms) * WANTED_REPETITIONS * SLOWER)
        self.seconds = options.seconds or min(LONGEST, max(SHORTEST, share))
        self.amounts: Dict[Tuple[str, int], int] = {}
        self.checks: Dict[Tuple[str, int], str] = {}
        self.took: Dict[Tuple[str, int], float] = {}  # all arms once
        self.peaks: Dict[str, Tuple[int, int]] = {}  # by row: threads, and the highest RSS with them, KiB
        self.failed: set = set()
        self.file: Any = None

    def _is_over(self, ahead: float = 0) -> bool:
        return time.monotonic() + ahead - self.started > self.options.minutes * 60

    def say(self, text: str) -> None:
        print(f"scale: {text}", file=sys.stderr, flush=True)

    def run(self) -> None:
        """Measures until the time is over; the files in `out` always have what was measured."""
        if not self.cells:
            raise UsageError("no row works with these numbers of threads")
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / RUN).write_text(json.dumps({
            "machine": description(), "seconds": self.seconds, "arms": [vars(arm) for arm in self.plan.arms],
            "rows": [vars(row) for row in self.plan.rows]}, indent=1) + "\n", encoding="utf-8")
        self.say(f"{len(self.cells) * len(self.plan.arms)} measurements of about {self.seconds:.2f} s in a repetition,"
                 f" {self.options.minutes:g} minutes; results: {self.out}")
        with open(self.out / SAMPLES, "w", encoding="utf-8", newline="") as self.file:
            self._write(COLUMNS)
            repetition = 0
            while (not self.options.repetitions or repetition < self.options.repetitions) and self._repeat(repetition):
                scale_show.write(self.out)
                repetition += 1
        scale_show.write(self.out)

    def _write(self, values) -> None:
        csv.writer(self.file, lineterminator="\n").writerow(values)
        self.file.flush()

    def _repeat(self, repetition: int) -> bool:
        """Every arm once in each cell; the arm that begins changes. False: the time is over."""
        for index, (row, threads) in enumerate(self.cells):
            key = (row.id, threads)
            begun = time.monotonic()
            if self._is_over(self.took.get(key, 0)):
                self.say(f"the time is over; repetitions: {repetition}, and a part of one")
                return False
            if repetition == 0:
                self._prepare(row, threads)
            if key not in self.amounts:
                continue
            self.say(f"repetition {repetition + 1}: {scale_show.cell(row.id, threads)}")
            first = (repetition + index) % len(self.plan.arms)
            for arm in self.plan.arms[first:] + self.plan.arms[:first]:
                if (key, arm.name) not in self.failed and not self._is_over():
                    self._sample(repetition, row, threads, arm)
            self.took[key] = time.monotonic() - begun
        return True

    def _prepare(self, row: Row, threads: int) -> None:
        """The amount of work, from a short run of the subject: the same for all arms. None if memory is short."""
        before, peak = self.peaks.get(row.id, (threads, 0))
        if peak * threads / before > available_kib() * MEMORY_PART:
            self.say(f"{scale_show.cell(row.id, threads)}: left out, memory would not suffice")
            return
        fewer = [count for name, count in self.amounts if name == row.id]
        guess = self.amounts[row.id, max(fewer)] / 2 if fewer else row.amount() * self.seconds / 2
        guess = max(1, round(guess))
        found = measure(self.plan.folder, row, threads, guess, self.plan.arms[0], self.options.timeout)
        if "failure" in found:
            self._note(0, row, threads, guess, self.plan.arms[0], found)
        else:
            self.amounts[row.id, threads] = max(1, round(guess * self.seconds * 1e9 / max(found["wall_ns"], 1)))

    def _sample(self, repetition: int, row: Row, threads: int, arm: ArmInfo) -> None:
        key = (row.id, threads)
        found = measure(self.plan.folder, row, threads, self.amounts[key], arm, self.options.timeout)
        if "failure" not in found and found["check"] != self.checks.setdefault(key, found["check"]):
            found = {"failure": "another output than that of who ran first"}
        self._note(repetition, row, threads, self.amounts[key], arm, found)

    def _note(self, repetition: int, row: Row, threads: int, amount: int, arm: ArmInfo, found: Dict[str, Any]) -> None:
        if "failure" in found:
            self.failed.add(((row.id, threads), arm.name))
            self.say(f"{scale_show.cell(row.id, threads)}, {arm.name}: {found['failure']}")
        else:
            self.peaks[row.id] = max((threads, found["hwm_kib"]), self.peaks.get(row.id, (0, 0)))
        found.update(repetition=repetition, row=row.id, threads=threads, arm=arm.name, amount=amount)
        self._write([found.get(key, "") for key in COLUMNS])


def run(folder: Path, out: Path, options: Options) -> str:
    """Measures with a bundle's programs and libraries; returns the tables' text."""
    plan = load(folder.resolve())
    libc = os.confstr("CS_GNU_LIBC_VERSION") or "glibc"
    for arm in plan.arms:
        if not arm.library:
            arm.label, arm.version, arm.sha256, arm.flags = libc, libc.partition(" ")[2], "", ""  # this machine's
    others = _chosen("allocator", plan.arms[2:], options.arms, lambda arm: arm.name)
    plan.arms = plan.arms[:2] + others
    plan.rows = _chosen("row", plan.rows, options.rows, lambda row: row.id)
    session = Session(plan, out, options)
    try:
        session.run()
    except KeyboardInterrupt:
        session.say("interrupted")
    return scale_show.write(out)


def numbers(text: str) -> List[int]:
    if not re.fullmatch(r"(\d+(,\d+)*)?", text) or "0" in text.split(","):
        raise UsageError(f"numbers with commas are wanted (1,2,4), not '{text}'")
    return [int(word) for word in text.split(",") if word]


def words(text: str) -> List[str]:
    return [word for word in text.split(",") if word]


def main(folder: Path, arguments: Optional[List[str]] = None) -> int:
    """The command of an unpacked bundle."""
    parser = argparse.ArgumentParser(prog="scale.py", description="Measures allocators on 1, 2, 4 … all CPUs.")
    parser.add_argument("--minutes", type=float, default=8, help="all together (8)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    parser.add_argument("--threads", default="", help="with commas; else powers of two, and all CPUs")
    parser.add_argument("--rows", default="", help="with commas; else all")
    parser.add_argument("--peers", default="", help="allocators beside hakmem, with commas; else all")
    parser.add_argument("--repetitions", type=int, default=0, help="at most so many; else as the time allows")
    parser.add_argument("--seconds", type=float, default=0, help="of a measurement; else as the time allows")
    parser.add_argument("--timeout", type=float, default=TIMEOUT,
                        help=f"seconds after which a measurement counts as hung ({TIMEOUT})")
    parser.add_argument("--show", type=Path, help="only the tables and the picture again, from the results there")
    given = parser.parse_args(arguments)
    try:
        options = Options(given.minutes, numbers(given.threads), words(given.rows), words(given.peers),
                          given.repetitions, given.seconds, given.timeout)
        print(scale_show.write(given.show) if given.show else run(folder, given.out, options), end="")
    except LabError as error:
        print(f"scale: {error}", file=sys.stderr)
        return error.status
    return 0
