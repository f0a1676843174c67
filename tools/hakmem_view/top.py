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

from . import frame, observer, page, process, terminal
from .errors import Closed, ViewError
from .frame import Head, Sample
from .installed import NAME
from .model import Stats, read

LOOK = 0.2  # seconds between looks at the keyboard and at the terminal's size
HIGH = 40  # lines of a frame that goes to no terminal
STOPPED = "it is stopped, by a signal or a debugger"
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


def sample(watch: observer.Watch, seconds: Optional[float] = None) -> Optional[Sample]:
    """The next one; None if there is none in time."""
    document, where = watch.next(seconds), watch.where
    if document is None:
        return None
    return Sample(read(Stats.of, document, where.what("stats")), time.monotonic(), where.rss(), process.uptime(where.pid),
                  process.thread_names(where.pid))


def once(where: observer.Observed, interval: float, svg: Optional[Path], out: Console) -> None:
    with observer.Watch(where, interval) as watch:
        before, now = sample(watch), sample(watch)
    about = Head(where.pid, process.command(where.pid), interval)
    high = out.height if out.is_terminal or "LINES" in os.environ else HIGH
    if svg is None:
        out.print(frame.render(about, before, now, out.width, high))
        return
    terminal.Look.has_colours = True
    paper = Console(record=True, file=io.StringIO(), width=out.width, height=high, force_terminal=True,
                    color_system="truecolor", highlight=False)
    paper.print(frame.render(about, before, now, paper.width, high))
    title = f"{NAME} top {about.pid}"
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
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return False
    pressed = os.read(sys.stdin.fileno(), 64)
    return not pressed or bool(set(pressed) & set(b"qQ\x03\x04"))


def _loop(watch: observer.Watch, interval: float, out: Console) -> None:
    before = now = sample(watch)
    about = Head(watch.where.pid, process.command(watch.where.pid), interval)
    note = f"first figures in {interval:g} s; q ends"
    with keys() as has_keys, Live(console=out, screen=True, auto_refresh=False) as live:
        while not wants_end(has_keys, 0.0):
            live.update(frame.render(about, before, now, out.width, out.height, note), refresh=True)
            found = sample(watch, LOOK)
            if found is not None:
                before, now = now, found
                note = STOPPED if process.state(about.pid) in ("T", "t") else ""


def run(where: observer.Observed, interval: float, out: Console) -> None:
    if not out.is_terminal:
        raise ViewError("top needs a terminal; --once prints one frame")
    try:
        with observer.Watch(where, interval) as watch:
            _loop(watch, interval, out)
    except KeyboardInterrupt:
        return


def show(where: observer.Observed, interval: float, is_once: bool, svg: Optional[Path]) -> None:
    out = terminal.console()
    try:
        if is_once or svg is not None:
            once(where, interval, svg, out)
        else:
            run(where, interval, out)
    except Closed as error:
        out.print(str(error))
