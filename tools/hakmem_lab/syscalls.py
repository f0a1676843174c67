# SPDX-License-Identifier: MIT
"""System calls of each allocator on a row, counted by strace."""
from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Callable

from rich.table import Table

from . import peers, place
from .arms import Arm
from .errors import LabError
from .execute import LONG_TIMEOUT, environment
from .rows import Row
from .session import Plan

LINE = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", re.M)


def parse(text: str) -> dict[str, int]:
    """The table that `strace -c` writes: call → count, without the total."""
    return {name: int(count) for count, name in LINE.findall(text) if name != "total"}


def count(row: Row, arm: Arm, scale: float) -> dict[str, int] | str:
    """Counts of the whole process and its children, or why there are none."""
    launch = arm.launch(peers.find_base(row.base))
    argv = list(row.command)
    if not argv:
        name, *arguments = row.arguments(scale)
        argv = [str(place.PROGRAMS / (f"{name}.ideal" if arm.info.kind == "ideal" else name)), *arguments]
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder:
        out = Path(folder) / "strace"
        preload = ["-E", f"LD_PRELOAD={launch.preloaded()}"] if launch.preloaded() else []
        try:
            done = subprocess.run(["strace", "-f", "-c", "-o", str(out), *preload, "--", *launch.prefix, *argv],
                                  env=environment(launch), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LONG_TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return f"no end after {LONG_TIMEOUT} s"
        if done.returncode != 0:
            last = done.stderr.decode(errors="replace").strip().splitlines()
            return f"exit status {done.returncode}" + (f": {last[-1]}" if last else "")
        return parse(out.read_text(encoding="utf-8", errors="replace"))


def table(row: Row, plan: Plan, say: Callable[[str], None]) -> Table:
    """Calls × arms, the most frequent first."""
    if shutil.which("strace") is None:
        raise LabError("strace is missing; install it (Debian: apt-get install strace)")
    shown = [arm for arm in plan.arms_of(row) if arm.info.kind != "again"]
    counts: dict[str, dict[str, int]] = {}
    for arm in shown:
        found = count(row, arm, plan.scale)
        if isinstance(found, str):
            say(f"{row.id}: {arm.name}: {found}")
            found = {}
        counts[arm.name] = found
    table = Table(title=f"{row.id}: system calls of the whole process", title_justify="left", header_style="bold")
    table.add_column("call")
    for arm in shown:
        table.add_column(arm.name, justify="right", overflow="fold")
    calls = sorted({call for found in counts.values() for call in found},
                   key=lambda call: -max(found.get(call, 0) for found in counts.values()))
    table.add_row("all", *[str(sum(counts[arm.name].values())) if counts[arm.name] else "–" for arm in shown],
                  style="bold")
    for call in calls:
        table.add_row(call, *[str(counts[arm.name].get(call, "")) for arm in shown])
    return table
