# SPDX-License-Identifier: MIT
"""`./hakmem top`: a sample every interval, a frame for each, until q, Ctrl-C or the end of the process."""
from __future__ import annotations

import io
import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

from rich.console import Console
from rich.live import Live

from . import frame, page, process, source, terminal
from .errors import Closed, Slow, ViewError
from .frame import Head, Sample
from .installed import NAME
from .model import Stats, read

LOOK = 0.2  # seconds between looks at the keyboard and at the terminal's size
HIGH = 40  # lines of a frame that goes to no terminal
LAST_SECONDS = 3.0  # the socket goes before the process does
STATS = "/stats.json"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def sample(where: source.Source) -> Sample:
    stats = read(Stats.of, where.document(STATS), f"{STATS} of {where.title()}")
    pid = where.pid or stats.pid
    return Sample(stats, time.monotonic(), process.rss(pid), process.uptime(pid), process.thread_names(pid))


def head(where: source.Source, first: Sample, interval: float) -> Head:
    pid = where.pid or first.stats.pid
    return Head(pid, process.command(pid), interval)


def wait_for_end(where: source.Source) -> bool:
    """Whether the process ends within a moment."""
    until = time.monotonic() + LAST_SECONDS
    while not where.ended():
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
    return True


def once(where: source.Source, interval: float, svg: Optional[Path], out: Console) -> None:
    before = sample(where)
    time.sleep(interval)
    now = sample(where)
    about = head(where, now, interval)
    high = out.height if out.is_terminal or "LINES" in os.environ else HIGH
    if svg is None:
        out.print(frame.render(about, before, now, out.width, high))
        return
    terminal.Look.has_colours = True
    paper = Console(record=True, file=io.StringIO(), width=out.width, height=high, force_terminal=True,
                    color_system="truecolor", highlight=False)
    paper.print(frame.render(about, before, now, paper.width, high))
    title = terminal.clip(f"{NAME} top {where.title() if not where.has_pid else about.pid}", 60)
    page.save(svg, paper.export_svg(title=title, code_format=SVG, unique_id="top"))
    print(f"hakmem: picture: {svg}", file=sys.stderr)


@contextmanager
def keys() -> Iterator[bool]:
    """Keys come at once and unseen, if there is a keyboard."""
    if not sys.stdin.isatty():
        yield False
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def wants_end(has_keys: bool, seconds: float) -> bool:
    """Waits; whether q was pressed."""
    if not has_keys:
        time.sleep(seconds)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return False
    pressed = os.read(sys.stdin.fileno(), 64)
    return not pressed or bool(set(pressed) & set(b"qQ\x03\x04"))


def _next(where: source.Source, last: Sample) -> tuple[Sample, str]:
    """The next sample, or the last one again with a reason."""
    try:
        return sample(where), ""
    except Slow:
        return last, f"no answer since {terminal.duration(time.monotonic() - last.seconds)}; is the process stopped?"


def _loop(where: source.Source, interval: float, out: Console) -> None:
    before = now = sample(where)
    about = head(where, now, interval)
    note = f"first figures in {interval:g} s; q ends"
    with keys() as has_keys, Live(console=out, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + min(interval, 1.0)
        while True:
            live.update(frame.render(about, before, now, out.width, out.height, note), refresh=True)
            if wants_end(has_keys, max(0.0, min(LOOK, due - time.monotonic()))):
                return
            if time.monotonic() < due:
                continue
            found, note = _next(where, now)
            if found is not now:
                before, now = now, found
            due = time.monotonic() + interval


def run(where: source.Source, interval: float, out: Console) -> None:
    if not out.is_terminal:
        raise ViewError("top needs a terminal; --once prints one frame")
    try:
        _loop(where, interval, out)
    except KeyboardInterrupt:
        return


def show(where: source.Source, interval: float, is_once: bool, svg: Optional[Path]) -> None:
    out = terminal.console()
    try:
        if is_once or svg is not None:
            once(where, interval, svg, out)
        else:
            run(where, interval, out)
    except Closed:
        if not wait_for_end(where):
            raise
        out.print(f"process {where.pid} has ended" if where.pid else "the process has ended")
