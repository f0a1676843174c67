# SPDX-License-Identifier: MIT
"""Instructions of one operation, counted by valgrind: exact where times are noisy.

A row is run with n and with 2 n operations; the difference is what n more operations take, without the start of the
process. n is so large that rare events have their usual part in it: a hundredth of a row of 6 000 steps may meet one
more refill, or one less, than another library's. The coarse clocks stand still, so that time decides nothing
(bench/rig/still_clock.c). Only rows of one thread: the others' counts depend on the schedule; and only those with an
amount of work that can be doubled.
"""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Callable, Optional

from . import arms, peers, place, prepare
from .execute import environment
from .rows import Row

WORK = 0.01  # of the row's, at least: valgrind is about 50 times slower
MOST = 0.5  # 2 n operations are at most the row's
ENOUGH = 10_000_000  # instructions of n operations
REPEATS = 3  # of a count; the least is taken, as what an allocator does after some time only adds to it
TIMEOUT = 300
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def parse(stderr: str) -> int:
    """The sum over all processes; 0 if nothing was counted."""
    return sum(int(count) for count in COLLECTED.findall(stderr))


def amounts(row: Row, scale: float) -> tuple[list[str], list[str]]:
    """The arguments for n and for 2 n operations, however small the row's amounts are."""
    short = row.arguments(scale)
    long = [str(2 * int(small)) if word.endswith("*") else small for word, small in zip(row.argv, short)]
    return short, long


def _run(argv: list[str], arm: arms.Arm) -> Optional[tuple[int, int]]:
    """(instructions, operations), the least of some runs; None if they cannot be counted."""
    counts = [_run_once(argv, arm) for _ in range(REPEATS)]
    return None if None in counts else min(counts)


def _run_once(argv: list[str], arm: arms.Arm) -> Optional[tuple[int, int]]:
    launch = arm.launch(peers.find_base("system"))
    env = {**environment(launch), "LD_PRELOAD": launch.preloaded()}
    command = ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null",
               str(place.PROGRAMS / f"{argv[0]}.still"), *argv[1:]]
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT, check=False)
        operations = json.loads(done.stdout.strip().splitlines()[-1])["ops"]
    except (subprocess.TimeoutExpired, ValueError, IndexError, KeyError):
        return None
    count = parse(done.stderr)
    return (count, operations) if done.returncode == 0 and count else None


def enough(row: Row, arm: arms.Arm, scale: float = 1.0) -> float:
    """How much of the row's work to count, if a run has `scale` of it."""
    counted = _run_once(row.arguments(WORK * scale), arm)
    times = ENOUGH / counted[0] if counted else 1.0
    return min(max(WORK * times, WORK), MOST) * scale


def per_operation(row: Row, arm: arms.Arm, scale: float = WORK) -> Optional[float]:
    short, long = (_run(argv, arm) for argv in amounts(row, scale))
    if short is None or long is None or long[1] <= short[1]:
        return None
    return (long[0] - short[0]) / (long[1] - short[1])


def count_rows(settings: prepare.Settings, sides: list[str], say: Callable[[str], None]) -> dict[str, list[float]]:
    """Per row that can be counted: instructions per operation of both sides."""
    if shutil.which("valgrind") is None:
        say("valgrind is missing: instructions are not counted (Debian: apt-get install valgrind)")
        return {}
    found = arms.resolve([arms.parse(side, settings.libs) for side in sides], settings.libs)
    counts = {}
    for row in prepare.chosen_rows(settings):
        if row.info.threads == 1 and row.app is None and any(word.endswith("*") for word in row.argv):
            say(f"counting instructions: {row.id}")
            scale = enough(row, found[0], settings.scale)
            pair = [per_operation(row, arm, scale) for arm in found]
            if None in pair:
                say(f"{row.id}: the instructions of {sides[pair.index(None)]} could not be counted")
            else:
                counts[row.id] = pair
    return counts
