# SPDX-License-Identifier: MIT
"""A made-up run for trying and testing what people see of one: plausible figures, and one of everything odd.

Twelve rows; eight allocators of which one is skipped, besides the second arm of the A/A pair and the ideal; a crashed
cell, a cell without a time, a noisy row, latency, curves; names that would be HTML if they were not escaped.
"""
from __future__ import annotations

import math
import random

from hakmem_lab import means, summary as summaries, tables
from hakmem_lab.model import (ArmInfo, Cell, Latency, RowInfo, RowSummary, RunSummary, Verdict)

EVIL = "<script>document.title='owned'</script> & \"x\" <b>"
MACHINE = {
    "processor": "AMD EPYC 7B13 64-Core Processor (family/model/stepping 25/1/1)", "architecture": "x86_64",
    "cpus": "2", "memory": "24 GiB", "kernel": "6.1.0-30-amd64", "page size": "4096",
    "transparent huge pages": "madvise", "overcommit": "0", "glibc": "glibc 2.36", "virtual": "yes",
}
ARMS = (  # name, label, version, kind, typical time, typical memory
    ("hakmem", "hakmem 0.1.0", "0.1.0", "subject", 1.02, 1.22),
    ("hakmem~again", "hakmem 0.1.0 (again)", "0.1.0", "again", 1.02, 1.22),
    ("glibc", "glibc 2.36", "2.36", "peer", 1.62, 1.05),
    ("mimalloc", "mimalloc 3.2.8", "3.2.8", "peer", 1.12, 1.78),
    ("mimalloc2", "mimalloc 2.2.6", "2.2.6", "peer", 1.13, 1.70),
    ("jemalloc", "jemalloc 5.3.0", "5.3.0", "peer", 1.38, 1.31),
    ("tcmalloc", "tcmalloc", "2025-06", "peer", 1.16, 1.49),
    ("snmalloc", "snmalloc 0.7.1", "0.7.1", "peer", 1.12, 1.31),
    ("scudo", "scudo", "", "peer", 2.9, 1.1),
    ("ideal", "ideal (inlined lists)", "", "ideal", 0.45, 0.95),
)
ROWS = (  # id, group, title, unit, metric, threads, time of the best, KiB of the smallest, has curves
    ("random_mixed/400", "small", "random sizes 16–1039 B, 400 live blocks", "ns/op", "cpu", 1, 9.5, 2900, False),
    ("random_mixed/100k", "small", "random sizes 16–1039 B, 100k live blocks", "ns/op", "cpu", 1, 47.2, 61000, True),
    ("burst/1k-lifo", "small", "1 000 blocks of 64 B, freed in reverse order", "ns/op", "cpu", 1, 5.31, 2500, False),
    ("larson/t4", "threads", "four threads exchange blocks", "ns/op", "wall", 4, 31.7, 25600, True),
    ("xmalloc/t2", "threads", "one thread allocates, the other frees", "ns/op", "wall", 2, 38.4, 9800, True),
    ("grow/string", "realloc", "a string grows by a few bytes at a time", "ns/op", "cpu", 1, 112.0, 3100, False),
    ("large/1m", "large", "blocks of 64 KiB to 4 MiB", "ns/op", "cpu", 1, 842.0, 71000, True),
    ("sawtooth/64m", "memory", "memory rises and falls five times", "ns/op", "cpu", 1, 88.1, 69000, True),
    ("start/true", "start", "a program that does nothing", "us/run", "wall", 1, 612.0, 1460, False),
    ("app/redis", "app", "a redis server, SET and GET", "us/request", "wall", 1, 6.42, 11800, True),
    ("app/lua", "app", "Lua builds and drops tables", "ms", "wall", 1, 412.0, 21800, True),
    (f"own/{EVIL}", "own", f"./{EVIL} --fast", "ms", "wall", 1, 1240.0, 154000, True),
)


TWO_ARMS = [ArmInfo("hakmem", "hakmem 1", kind="subject"), ArmInfo("other", "other 1")]


class Run:
    """A run of measurements that a test states."""

    def __init__(self, rows, samples, arms=TWO_ARMS):
        self.samples, self.complete = samples, True
        self.header = type("Header", (), dict(
            id="id", started="now", tier="full", machine={"cpus": "2"}, rounds=10, threshold=0.01,
            subject="hakmem", arms=arms, rows=rows, skipped={}, parts=3))()


def summarised(samples, group="memory", arms=TWO_ARMS) -> RunSummary:
    """Of a run with one row, "r"."""
    return summaries.summarise(Run([RowInfo("r", group, "r", "", "cpu", "ns/op")], samples, arms))


def timed(arm, values, **more):
    """One round of the row "r" for each value."""
    return [{"kind": "time", "row": "r", "arm": arm, "round": turn, "value": float(value),
             "hwm_kib": 1000, "minflt": 5, "cpu_ns": 2e6, **more}
            for turn, value in enumerate(values)]


def printed(table) -> str:
    console = tables.console()
    console.width = 160
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def _curve(draw: random.Random, peak: float, saw: bool) -> list[tuple[float, float]]:
    points = []
    for at in range(240):
        level = abs(math.sin(at / 24)) ** 0.7 if saw else 1 - math.exp(-at / 40)
        points.append((at * 5.0, round(1200 + (peak - 1200) * level * draw.uniform(0.97, 1.0))))
    return points


def _cell(draw: random.Random, arm: tuple, row: tuple, rounds: int) -> Cell:
    name, _, _, kind, time, size = arm
    rough = 0.002 if kind in ("subject", "again") else 0.12
    value = row[6] * (time if kind == "ideal" else max(1.0, time * math.exp(draw.gauss(0, rough))))
    peak = row[7] * max(1.0, size * math.exp(draw.gauss(0, 0.1)))
    half = draw.uniform(0.002, 0.008) * value
    cell = Cell(name, rounds, value, value - half, value + half, 0.012, peak_kib=round(peak),
                average_kib=round(peak * 0.71), minflt=round(peak / 4.1), cpu_ms=value * 21.5)
    if row[1] in ("small", "threads", "large", "memory"):
        cell.after_kib, cell.peak_to_live = round(peak * 0.21), size * 1.06
    if row[1] == "memory":
        cell.end_kib, cell.end_to_live = round(peak * 0.4), size * 3.1
    if row[8] and kind != "ideal":
        cell.curve = _curve(draw, peak, row[1] == "memory")
    return cell


def _verdict(mine: Cell, other: Cell) -> Verdict:
    ratio = mine.time / other.time
    low, high = ratio * 0.994, ratio * 1.006
    word = "better" if ratio <= 0.99 and high < 1 else "worse" if ratio >= 1.01 and low > 1 else "no difference"
    return Verdict(word, ratio, low, high, mine.rounds)


def _row(draw: random.Random, line: tuple, arms: list[tuple], rounds: int) -> RowSummary:
    info = RowInfo(line[0], line[1], line[2], f"It measures {line[2]}, on each allocator alike.", line[4], line[3],
                   line[5], line[0].replace("/", " "))
    cells = {arm[0]: _cell(draw, arm, line, rounds) for arm in arms
             if arm[3] != "ideal" or line[1] == "small"}
    row = RowSummary(info, cells)
    if line[0] == "larson/t4":
        cells["jemalloc"] = Cell("jemalloc", failure="signal 11 (SIGSEGV)")
    if line[0] == "start/true":
        del cells["tcmalloc"]
    if line[0] == "large/1m":
        cells["scudo"] = Cell("scudo", rounds=1, peak_kib=90123)
    rank = [cell for name, cell in cells.items() if name not in ("hakmem~again", "ideal") and not cell.failure]
    best = min((cell for cell in rank if cell.time), key=lambda cell: cell.time)
    least = min(rank, key=lambda cell: cell.peak_kib)
    row.best_time, row.best_peak = best.arm, least.arm
    for name, cell in cells.items():
        cell.time_ratio = cell.time / best.time if cell.time else None
        cell.peak_ratio = cell.peak_kib / least.peak_kib if cell.peak_kib else None
        if name not in ("hakmem", "hakmem~again"):
            cell.against = _verdict(cells["hakmem"], cell) if cell.time else Verdict("not measured")
    row.noisy = line[0] == "xmalloc/t2"
    row.again = Verdict("worse", 1.031, 1.012, 1.049, rounds) if row.noisy else \
        Verdict("no difference", 1.001, 0.997, 1.004, rounds)
    row.noise = 0.049 if row.noisy else 0.004
    return row


def _latency(draw: random.Random, row: str, arm: tuple) -> Latency:
    counts: dict[float, int] = {}
    for _ in range(12_000):
        value = 11 * arm[4] * math.exp(abs(draw.gauss(0, 0.35)))
        value *= 40 * arm[4] if draw.random() < 0.004 else 1
        value *= 300 if draw.random() < 0.0004 else 1
        upper = float(math.ceil(2 ** (math.ceil(math.log2(value) * 8) / 8)))
        counts[upper] = counts.get(upper, 0) + 1
    histogram = sorted(counts.items())
    values = [upper for upper, times in histogram for _ in range(times)]
    points = {key: values[min(len(values) - 1, int(len(values) * float(key) / 100))]
              for key in ("50", "90", "99", "99.9", "99.99")}
    return Latency(row, arm[0], {**points, "max": values[-1]}, histogram)


def summary(seed: int = 1, rows: int = 12, rounds: int = 10, evil: bool = True) -> RunSummary:
    draw = random.Random(seed)
    arms = [arm for arm in ARMS if arm[0] != "snmalloc"]
    lines = [line for line in ROWS[:rows] if evil or line[1] != "own"]
    measured = [_row(draw, line, arms, rounds) for line in lines]
    skip = f"cannot be built: no C++ 20 compiler {EVIL}" if evil else "cannot be built: no C++ 20 compiler"
    infos = [ArmInfo(name, label, kind, version, "" if name == "glibc" else f"lib/{name}.so",
                     "" if name == "glibc" else f"{index:064x}", "glibc 2.36",
                     flags="" if name == "glibc" else "gcc 12.2: -O3 -DNDEBUG",
                     env="GLIBC_TUNABLES=glibc.pthread.rseq=0" if name == "tcmalloc" else "",
                     skip=skip if name == "snmalloc" else "") for index, (name, label, version, kind, _, _) in
             enumerate(ARMS)]
    ranked = [arm[0] for arm in arms if arm[3] in ("subject", "peer")]
    common = means.common_rows(measured, ranked)
    latency = [_latency(draw, line[0], arm) for line in lines[:4:3] for arm in arms if arm[3] != "ideal"]
    return RunSummary("2026-05-09-full", "2026-05-09 14:03", "full", dict(MACHINE), rounds, 0.01, "hakmem", infos,
                      measured, [means.arm_summary(measured, common, name) for name in ranked], latency,
                      skipped={"app/z3": f"missing z3 {EVIL}"} if evil else {})
