# SPDX-License-Identifier: MIT
"""The nouns of the lab, as plain data. Nothing here computes anything."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


@dataclass
class ArmInfo:
    """One side of a comparison: an allocator as it was loaded."""

    name: str  # what the user types, what records refer to: "hakmem", "mimalloc3", "hakmem+learn:0", "old"
    label: str  # what people read: "mimalloc 3.2.8"
    kind: str = "peer"  # subject | peer | again (the second arm of the A/A pair) | ideal
    version: str = ""  # read from the loaded library
    library: str = ""  # what is preloaded; "" for the C library's own
    sha256: str = ""
    base: str = ""  # the C libraries it runs on in this run: "glibc 2.36", or "glibc 2.36, glibc 2.43"
    options: str = ""  # HAKMEM_OPTIONS of this arm
    flags: str = ""  # how it was built, or the package it came in
    env: str = ""  # variables set for it, besides its options: "NAME=value …"
    skip: str = ""  # why it cannot take part; "" if it does


@dataclass
class RowInfo:
    """One workload with its arguments."""

    id: str  # "random_mixed/400", "larson/t4", "app/redis"
    group: str  # small | program | threads | realloc | large | cliff | memory | start | latency | app | newest | own
    title: str  # plain words: "random sizes 16–1039 B, 400 live blocks"
    text: str  # one or two sentences: what it measures
    metric: str  # which value decides, fixed before the run: "cpu" or "wall"
    unit: str  # "ns/op", "ms", "us/request"
    threads: int = 1
    program: str = ""  # the workload's name, with its arguments


@dataclass
class Verdict:
    """Of arm A against arm B, by the pre-registered metric."""

    word: str  # "better" | "no difference" | "worse" | "noisy" (it depends on the mode met) | "not measured"
    ratio: float = float("nan")  # A / B: below 1 is less time
    low: float = float("nan")  # bootstrap interval of the ratio
    high: float = float("nan")
    rounds: int = 0


@dataclass
class Cell:
    """What was measured for one arm on one row."""

    arm: str
    rounds: int = 0
    time: Optional[float] = None  # median, in the row's unit
    low: Optional[float] = None  # bootstrap interval of the median
    high: Optional[float] = None
    spread: Optional[float] = None  # interquartile range / median
    mode_low: Optional[float] = None  # where the rounds fall into two modes: the lower one's median, and
    mode_high: Optional[float] = None  # the higher one's; else both None
    time_ratio: Optional[float] = None  # time / the time of the row's best arm (1.0 for the best)
    peak_kib: Optional[float] = None  # highest RSS
    peak_ratio: Optional[float] = None  # peak / the lowest peak of the row
    average_kib: Optional[float] = None  # RSS averaged over the run
    after_kib: Optional[float] = None  # RSS one second after everything was freed
    peak_to_live: Optional[float] = None  # peak / largest sum of live bytes, where the workload knows it
    end_kib: Optional[float] = None  # RSS at the end of the work, before the rest is freed
    end_to_live: Optional[float] = None  # the same / bytes that live then, where the workload states them
    minflt: Optional[float] = None  # minor page faults of the measured section
    faults_per_op: Optional[float] = None  # the same / operations
    cpu_ms: Optional[float] = None
    curve: list[tuple[float, float]] = field(default_factory=list)  # (ms since start, RSS KiB)
    against: Optional[Verdict] = None  # of the run's subject (hakmem) against this arm; None for the subject
    peak_against: Optional[Verdict] = None  # the same of highest RSS
    failure: str = ""  # "signal 11 (SIGSEGV)", "no end after 60 s", "output differs": then there are no figures


@dataclass
class RowSummary:
    row: RowInfo
    cells: dict[str, Cell]  # by arm name, in the run's order; only arms that took part in the row
    best_time: str = ""  # name of the arm with the lowest time; never ideal or again
    best_peak: str = ""
    again: Optional[Verdict] = None  # the A/A pair: subject against itself
    noisy: bool = False  # the A/A pair differs, or strays from 1 by more than twice the threshold
    dominators: list[str] = field(default_factory=list)  # beat the subject at time and peak: summary.dominates
    noise: float = 0.0  # how far the A/A pair strays from 1: 0.012 = ±1.2 %


@dataclass
class ArmSummary:
    name: str
    rows: int
    time_mean: float  # geometric mean of time_ratio
    peak_mean: float  # geometric mean of peak_ratio
    first: int  # on how many rows it is the fastest
    failures: int


@dataclass
class Latency:
    row: str
    arm: str
    percentiles: dict[str, float]  # "50", "90", "99", "99.9", "99.99", "max" → ns
    histogram: list[tuple[float, int]]  # (upper bound in ns, count), ascending


@dataclass
class RunSummary:
    """Everything tables, report, CSV and README are made of."""

    id: str
    started: str
    tier: str  # quick | full | own | health
    machine: dict[str, str]  # fingerprint, in the order to print
    rounds: int
    threshold: float  # 0.01
    subject: str  # "hakmem"
    arms: list[ArmInfo]  # with the skipped ones
    rows: list[RowSummary]
    means: list[ArmSummary]
    latency: list[Latency] = field(default_factory=list)
    parts: int = 1  # runs of a workload in a round, of which the fastest counts
    complete: bool = True
    skipped: dict[str, str] = field(default_factory=dict)  # rows that could not be measured, and why

    @property
    def ranked(self) -> list[RowSummary]:
        """Rows whose time and memory are compared. Those that time single calls have tables and figures of their own:
        their time is mostly the clock's."""
        return [row for row in self.rows if row.row.group != "latency"]
