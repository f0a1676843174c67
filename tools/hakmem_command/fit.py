# SPDX-License-Identifier: MIT
"""`hakmem fit -- PROGRAM`: the least limit of memory under which a program ends nearly as fast as without one, on hakmem
and on each allocator that is installed: how large its container must be."""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from hakmem_view import installed
from hakmem_view.elf import Elf
from hakmem_view.errors import ViewError, need_writable

from . import groups

ABOUT = {"fit": "The least memory limit under which a program ends nearly as fast as without one, for each allocator."}
# Names of peers, and of their libraries as the dynamic linker knows them.
PEERS = {"jemalloc": r"libjemalloc\.so\.\d+", "mimalloc": r"libmimalloc\.so\.\d[\d.]*",
         "tcmalloc": r"libtcmalloc_minimal\.so\.\d+", "snmalloc": r"libsnmallocshim\.so[\d.]*",
         "hardened_malloc": r"libhardened_malloc\.so"}
TRIES = 3  # runs at a limit; most of them decide
PRECISION = 0.02  # of the answer
STEP = 64 << 10  # bytes: limits are multiples of it
LATE, GRACE_SECONDS = 3, 1  # times of what is allowed, and more, after which a run under a limit is ended
MIB = 1 << 20


@dataclass
class Point:
    """What a limit did."""

    limit: int
    fits: bool
    ratios: list[float]  # time against that without a limit, of the runs that ended well


@dataclass
class Arm:
    """An allocator, and what was found of it."""

    name: str
    library: str  # "": what the program has by itself
    free: list[groups.Ran] = field(default_factory=list)  # without a limit
    peak: int = 0
    points: list[Point] = field(default_factory=list)
    least: Optional[int] = None
    failure: str = ""

    @property
    def wall(self) -> float:
        return statistics.median(ran.wall for ran in self.free)

    def ratio(self, ran: groups.Ran) -> float:
        """Its time against that without a limit. Waiting for a processor is not the limit's doing, waiting for a disk is."""
        cpu = ran.cpu / max(1e-3, statistics.median(one.cpu for one in self.free))
        waits = ran.waits > max(one.waits for one in self.free)
        return max(cpu, ran.wall / self.wall) if waits else cpu


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slow", type=_percent, default=10.0, metavar="PERCENT", help="how much longer it may take than without a limit; 10")
    parser.add_argument("--with", dest="others", action="append", default=[], metavar="NAME=LIBRARY", help="another allocator; may be repeated")
    parser.add_argument("--only", default="", metavar="NAMES", help="these allocators alone: hakmem,jemalloc")
    parser.add_argument("--options", default="", metavar="TEXT", help="of hakmem, as in HAKMEM_OPTIONS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all runs; -: to standard output, and the table to standard error")
    parser.add_argument("--html", type=Path, metavar="FILE", help="a page that draws time over limit")
    parser.add_argument("program", nargs="+", metavar="PROGRAM", help="and its arguments, best behind --")


def _percent(text: str) -> float:
    try:
        found = float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage") from None
    if not 1 <= found <= 1000:
        raise argparse.ArgumentTypeError("--slow goes from 1% to 1000%")
    return found


def search(fits: Callable[[int], bool], peak: int) -> Optional[int]:
    """The least limit that fits, to within PRECISION; None: not even a quarter more than the peak does. More memory is
    taken to be never worse."""
    low, top = 0, None
    for size in (_stepped(peak * part) for part in (1, 1.05, 1.25)):
        if fits(size):
            top = size
            break
        low = size
    while top is not None and top - low > max(STEP, int(top * PRECISION)):
        middle = max(STEP, _stepped((low + top) / 2))
        if middle in (low, top):
            break
        low, top = (low, middle) if fits(middle) else (middle, top)
    return top


def _stepped(size: float) -> int:
    return -(-int(size) // STEP) * STEP


class Fit:
    """All runs of one program."""

    def __init__(self, program: list[str], group, slow: float, env: dict[str, str], folder: Path):
        self.program, self.group, self.slow, self.env = program, group, 1 + slow / 100, env
        self.errors = folder / "errors"

    def run(self, arm: Arm, limit: int = 0) -> groups.Ran:
        env = dict(self.env)
        if arm.library:
            env["LD_PRELOAD"] = arm.library
        timeout = LATE * self.slow * max(ran.wall for ran in arm.free) + GRACE_SECONDS if limit else None
        return self.group.run(groups.Run(self.program, env, self.errors, timeout), limit)

    def measure(self, arm: Arm) -> None:
        """Without a limit."""
        ran = self.run(arm)
        if ran.status:
            arm.failure = f"ends with {_status(ran.status)} without a limit{': ' if ran.words else ''}{ran.words}"
        arm.free.append(ran)
        arm.peak = max(arm.peak, ran.peak)

    def fits(self, arm: Arm, limit: int) -> bool:
        """By most of TRIES runs."""
        good, bad, ratios = 0, 0, []
        while max(good, bad) <= TRIES // 2:
            ran = self.run(arm, limit)
            ended = ran.status == 0 and not ran.killed and not ran.late
            if ended:
                ratios.append(arm.ratio(ran))
            good, bad = (good + 1, bad) if ended and ratios[-1] <= self.slow else (good, bad + 1)
        arm.points.append(Point(limit, good > bad, ratios))
        return good > bad


def _status(status: int) -> str:
    return f"status {status}" if status > 0 else f"signal {-status}"


def _installed() -> dict[str, str]:
    """Libraries of other allocators that the dynamic linker finds for our machine."""
    linker = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    listed = subprocess.run([linker, "-p"], capture_output=True, text=True, check=False).stdout if linker else ""
    machine = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(os.uname().machine, "")
    found: dict[str, str] = {}
    for file, kind, path in re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", listed, re.M):
        name = next((one for one, pattern in PEERS.items() if re.fullmatch(pattern, file)), "")
        if name and machine in kind:
            found.setdefault(name, path)
    return found


def arms(given: argparse.Namespace) -> list[Arm]:
    if not installed.LIBRARY.is_file():
        raise ViewError(f"there is no {installed.LIBRARY}; `{installed.NAME} build` makes it")
    found = {"hakmem": str(installed.LIBRARY.resolve()), "C library": "", **_installed()}
    for word in given.others:
        name, equals, path = word.partition("=")
        if not equals or not Path(path).is_file():
            raise ViewError(f"--with {word}: NAME=LIBRARY is wanted, and the file must be there")
        found[name] = str(Path(path).resolve())
    chosen = [name.strip() for name in given.only.split(",") if name.strip()] or list(found)
    for name in chosen:
        if name not in found:
            raise ViewError(f"--only: no allocator '{name}' is installed; there are: {', '.join(found)}")
    return [Arm(name, found[name]) for name in chosen]


def _check(program: list[str]) -> list[str]:
    path = shutil.which(program[0])
    if path is None:
        raise ViewError(f"there is no program '{program[0]}' that can be started")
    file = Elf.open(path)
    if file is not None and not file.needed:
        raise ViewError(f"{path} is linked statically: no other allocator can be brought into it")
    return [path, *program[1:]]


def _mib(size: Optional[int]) -> str:
    return f"{size / MIB:.1f} MiB" if size is not None else "-"


def table(found: list[Arm], slow: float, has_limits: bool) -> str:
    rows = [("Allocator", *(("Least limit", "Time there") if has_limits else ()), "Peak without", "Time without")]
    order = sorted(found, key=lambda arm: (bool(arm.failure), arm.least if arm.least is not None else arm.peak))
    for arm in order:
        if arm.failure:
            continue
        there = next((point for point in arm.points if point.limit == arm.least and point.fits), None)
        time = f"{statistics.median(there.ratios):.2f}" if there else "-"
        rows.append((arm.name, *((_mib(arm.least), time) if has_limits else ()), _mib(arm.peak), f"{arm.wall:.2f} s"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                       for at, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
    lines += [f"{arm.name}: {arm.failure}" for arm in order if arm.failure]
    if has_limits and any(arm.least is None and not arm.failure for arm in found):
        lines.append(f"-: not within {1 + slow / 100:.2f} times its time even with a quarter more than its peak")
    return "\n".join(lines)


def _document(found: list[Arm], program: list[str], slow: float, about: str) -> dict:
    return {"hakmem": installed.own_version(), "program": program, "slow_percent": slow, "limits_by": about,
            "allocators": [{"name": arm.name, "library": arm.library, "least_bytes": arm.least, "peak_bytes": arm.peak,
                            "seconds": [ran.wall for ran in arm.free], "failure": arm.failure,
                            "limits": [{"bytes": point.limit, "fits": point.fits, "time_ratios": point.ratios}
                                       for point in sorted(arm.points, key=lambda one: one.limit)]} for arm in found]}


def _page(path: Path, found: list[Arm], program: list[str], slow: float) -> None:
    """Time over limit."""
    import plotly.graph_objects as plotly

    figure = plotly.Figure()
    for arm in found:
        points = sorted((one for one in arm.points if one.ratios), key=lambda one: one.limit)
        figure.add_scatter(x=[one.limit / MIB for one in points], y=[statistics.median(one.ratios) for one in points],
                           mode="lines+markers", name=arm.name)
    figure.add_hline(y=1 + slow / 100, line_dash="dot")
    figure.update_layout(title=f"Time of {Path(program[0]).name} over its memory limit", template="plotly_white",
                         xaxis_title="limit, MiB", yaxis_title="time / time without a limit")
    figure.write_html(path, include_plotlyjs=True)


def _end(number: int, _) -> None:
    """As Ctrl-C: groups go."""
    sys.exit(128 + number)


def run(_: str, given: argparse.Namespace) -> int:
    try:
        return _run(given)
    finally:
        groups.give_back()


def _run(given: argparse.Namespace) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    for path in filter(None, (given.json, given.html)):
        need_writable(path)
    if given.html:
        try:
            import plotly.graph_objects  # noqa: F401  (before the program runs for minutes)
        except ImportError:
            raise ViewError("fit: --html needs the Python package plotly; without it there are text and --json") from None
    program, chosen, group = _check(given.program), arms(given), groups.find()
    has_limits = not isinstance(group, groups.Largest)
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if given.options:
        env["HAKMEM_OPTIONS"] = given.options
    with tempfile.TemporaryDirectory(prefix="hakmem-fit-") as folder:
        fit = Fit(program, group, given.slow, env, Path(folder))
        for turn in range(TRIES):  # in turns, so that a slow minute meets all
            for arm in chosen:
                _say(f"{arm.name}, without a limit, {turn + 1} of {TRIES}")
                if not arm.failure:
                    fit.measure(arm)
        for arm in chosen if has_limits else []:
            def tried(limit: int, arm: Arm = arm) -> bool:
                _say(f"{arm.name}, {limit / MIB:.1f} MiB")
                return fit.fits(arm, limit)
            arm.least = None if arm.failure else search(tried, arm.peak)
    _say("")
    if all(arm.failure for arm in chosen):
        raise ViewError(f"{given.program[0]} {chosen[0].failure}")
    if has_limits:
        about = (f"The least memory limit under which {given.program[0]} ends within {1 + given.slow / 100:.2f} times its time,"
                 f" by {group.about}:")
    else:
        about = ("No limit could be set: that takes root, or a session of systemd. The peak of the largest process instead;"
                 " a container holds page tables, the kernel's memory and cached files, too.")
    width = min(110, max(60, shutil.get_terminal_size((110, 24)).columns))
    is_piped = str(given.json) == "-"
    print(textwrap.fill(about, width, break_long_words=False, break_on_hyphens=False) + "\n\n" + table(chosen, given.slow, has_limits),
          file=sys.stderr if is_piped else sys.stdout)
    if given.json:
        text = json.dumps(_document(chosen, given.program, given.slow, group.about), indent=1) + "\n"
        sys.stdout.write(text) if is_piped else given.json.write_text(text, encoding="utf-8")
    if given.html:
        _page(given.html, chosen, given.program, given.slow)
    return 0


def _say(text: str) -> None:
    """One line that is written over, on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
