# SPDX-License-Identifier: MIT
"""Instructions of one operation, counted by valgrind: exact where times are noisy.

A row is run with n and with 2 n operations; the difference is what n more operations take, without the start of the
process. Only rows of one thread: the others' counts depend on the schedule.
"""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Callable

from . import arms, peers, place, prepare
from .execute import environment
from .rows import Row

OPERATIONS = 0.01  # of the row's work: valgrind is about 50 times slower
TIMEOUT = 300
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def parse(stderr: str) -> int | None:
    found = COLLECTED.search(stderr)
    return int(found.group(1)) if found else None


def _run(row: Row, arm: arms.Arm, scale: float) -> tuple[int, int] | None:
    """(instructions, operations) of one run; None if it cannot be counted."""
    name, *arguments = row.arguments(scale)
    launch = arm.launch(peers.find_base("system"))
    env = environment(launch, False)
    if launch.preload:
        env["LD_PRELOAD"] = launch.preload
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(place.PROGRAMS / name), *arguments]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        operations = json.loads(done.stdout.strip().splitlines()[-1])["ops"]
    except (subprocess.TimeoutExpired, ValueError, IndexError, KeyError):
        return None
    count = parse(done.stderr)
    return (count, operations) if done.returncode == 0 and count else None


def per_operation(row: Row, arm: arms.Arm, scale: float = OPERATIONS) -> float | None:
    short, long = _run(row, arm, scale), _run(row, arm, 2 * scale)
    if short is None or long is None or long[1] <= short[1]:
        return None
    return (long[0] - short[0]) / (long[1] - short[1])


def count_rows(settings: prepare.Settings, sides: list[str], say: Callable[[str], None]) -> dict[str, list[float]]:
    """Per row of one thread: instructions per operation of both sides."""
    if shutil.which("valgrind") is None:
        say("valgrind is missing: instructions are not counted (Debian: apt-get install valgrind)")
        return {}
    found = arms.resolve([arms.parse(side, settings.libs) for side in sides], settings.libs)
    counts = {}
    for row in prepare.chosen_rows(settings):
        if row.info.threads == 1 and row.app is None:
            say(f"counting instructions: {row.id}")
            pair = [per_operation(row, arm, OPERATIONS * settings.scale) for arm in found]
            if None not in pair:
                counts[row.id] = pair
    return counts
