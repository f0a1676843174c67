# SPDX-License-Identifier: MIT
"""`hakmem top` and `map` where the Python environment is not there: by the standard library alone, as text. `top` is the
view of top.py where the package rich can be imported; pages and pictures say which package they need."""
from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from typing import NoReturn, Optional

from . import observer, own_program, process, wording
from .errors import Closed, ViewError
from .model import Map, Span, Stats, parse, read
from .wording import number, size

HIGH, WIDE = 24, 80  # of a frame that goes to no terminal
LINES = 10  # of a table in a frame
PICTURE_ROWS = 120  # superslabs of a picture
HELD = (("held", ("live", "large", "huge")), ("cached", ("cached", "remote", "quarantine", "lost")),
        ("free", ("slab_free",)), ("retained", ("unused_dirty", "huge_cached_dirty")))
CLEAR = "\033[H\033[J"
FULL, LOW = "#", "+"  # slabs of which half or more is in use; of which less is
MARKS = {"large": "L", "dirty": "d", "clean": "."}


class _Words(argparse.ArgumentParser):
    """Complaints are one line of ours."""

    def error(self, message: str) -> NoReturn:
        raise ViewError(f"{self.prog}: {message}")


def _events(before: Stats, now: Stats, seconds: float) -> list[tuple[str, float]]:
    """A second, most first, without counters of bytes."""
    found = [(name, (value - before.events.get(name, 0)) / seconds) for name, value in now.events.items()
             if not name.endswith("bytes")]
    return sorted(((name, rate) for name, rate in found if rate > 0), key=lambda one: -one[1])


def _frame(pid: int, before: Stats, now: Stats, seconds: float, high: int) -> list[str]:
    lines = [f"hakmem {now.version}  {process.called(pid)}  up {wording.duration(process.uptime(pid))}  "
             f"RSS {size(process.rss(pid))}  {wording.count(now.counts.get('threads', len(now.threads)), 'thread')}",
             "addresses: " + "  ".join(f"{name} {size(now.held(*keys))}" for name, keys in HELD),
             f"learner: {', '.join(wording.kept(now.limits)) or 'the standard decides'}"
             + "".join(f"; {words}" for words in wording.decisions(now.events)), "", "Events per second (slow paths only)"]
    room = max(3, min(LINES, (high - 13) // 3))
    rates = _events(before, now, seconds)
    lines += [f"{number(rate):>10}  {wording.spoken(name)}" for name, rate in rates[:room]] or ["      none"]
    lines += ["", f"{'block':>10}{'slabs':>8}{'held':>12}{'cached':>12}{'free':>12}"]
    rows = now.rows()
    lines += [f"{name:>10}{number(row.slabs):>8}" + "".join(
        f"{size(value * row.bytes):>12}" for value in (row.live, row.cached, row.free)) for name, row in rows[:room]]
    lines += [f"{len(rows) - room:>10} more"] * (len(rows) > room)
    names = process.thread_names(pid)
    lines += ["", f"{'thread':>10} {'name':<16}{'cached':>11}{'idle':>12}"]
    threads = sorted(now.threads, key=lambda row: -row.cached_bytes)
    lines += [f"{row.id or wording.NONE:>10} {names.get(row.id, '')[:15]:<16}{size(row.cached_bytes):>11}"
              f"{wording.duration(row.idle_ms / 1000):>12}" for row in threads[:room]]
    return lines + [f"{len(threads) - room:>10} more, {size(sum(row.cached_bytes for row in threads[room:]))} cached"] * (len(threads) > room)


def _terminal() -> tuple[int, int]:
    """Before Python 3.10 a terminal that states no size has 0 columns and lines."""
    wide, high = shutil.get_terminal_size((WIDE, HIGH))
    return wide or WIDE, high or HIGH


def _refresh(watch: observer.Watch, is_once: bool) -> None:
    def sample() -> tuple[Stats, float]:
        return read(Stats.of, watch.next(), watch.where.what("stats")), time.monotonic()
    before, taken = sample()
    while True:
        now, moment = sample()
        wide, high = _terminal()
        high = high if sys.stdout.isatty() else 3 * LINES
        lines = _frame(watch.where.pid, before, now, moment - taken, high)[:high]
        print(("" if is_once else CLEAR) + "\n".join(line[:wide] for line in lines), end="\n" if is_once else "", flush=True)
        if is_once:
            return
        before, taken = now, moment


def _top(words: list[str]) -> None:
    parser = _Words("top", add_help=False)
    parser.add_argument("target", metavar="PID")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--interval", type=float, default=1.0, metavar="S")
    parser.add_argument("--svg", type=Path, metavar="FILE")
    given = parser.parse_args(words)
    if not 0.1 <= given.interval <= 3600:
        raise ViewError("top: --interval is 0.1 to 3600 seconds")
    try:
        from . import top as live
    except ModuleNotFoundError as error:
        live, missing = None, error.name
    if live is not None:
        live.show(observer.find(given.target), given.interval, given.once, given.svg)
        return
    if given.svg:
        raise ViewError(f"top --svg needs the Python package {missing}")
    if not given.once and not sys.stdout.isatty():
        raise ViewError("top needs a terminal; --once prints one frame")
    try:
        with observer.Watch(observer.find(given.target), given.interval) as watch:
            _refresh(watch, given.once)
    except Closed as error:
        print(error)
    except KeyboardInterrupt:
        print()


def _letter(span: Span) -> str:
    if not span.is_slab:
        return MARKS.get(span.kind, "?")
    return (FULL if span.occupancy >= 0.5 else LOW) if span.live else "_"


def _write_map(heap: Map, title: str) -> None:
    from . import picture  # by the standard library but for drawing
    print(f"{title}  {picture.about(heap)}\n{picture.summary(heap)}")
    print("a letter per 64 KiB; slabs: # half or more in use, + less, _ empty; L large block, d unused but resident, . unused")
    shown = picture.chosen(heap, 32)
    for superslab, more in picture.folded(shown):
        cells = [" "] * heap.units
        for span in superslab.spans:
            cells[span.unit:span.unit + span.units] = _letter(span) * span.units
        print(f"{superslab.base.removeprefix('0x'):>12} {''.join(cells)}  {size(superslab.free_bytes)} free in slabs")
        if more:
            print(f"{'':>12} ... {more} more like it")
    if len(heap.superslabs) > len(shown):
        print(f"{wording.count(len(heap.superslabs) - len(shown), 'more superslab')} with less free room in their slabs")
    print(f"\n{'block':>10}{'slabs':>8}{'of slabs':>12}{'hold':>10}{'in use':>10}{'full':>8}")
    for one in heap.classes:
        print(f"{f'{one.bytes} B':>10}{number(one.slabs):>8}{size(one.units * heap.unit_bytes):>12}"
              f"{number(one.capacity):>10}{number(one.live):>10}{wording.percent(one.occupancy):>8}")
    for block in sorted(heap.huge, key=lambda one: -one.bytes)[:12]:
        print(f"huge block {block.base}: {size(block.bytes)}{', kept for reuse' if block.kind == 'cached' else ''}")


def _draw(heap: Map, title: str, files: dict[str, Optional[Path]]) -> None:
    named = [name for name, path in files.items() if path]
    if len(named) > 1:
        raise ViewError(f"either --{' or --'.join(named)}, not both")
    if not named:
        _write_map(heap, title)
        return
    try:
        from . import page, picture
        if files["svg"]:
            page.save(files["svg"], picture.draw(heap, title, rows=PICTURE_ROWS, is_alone=True)[0])
        else:
            from . import map_view
            if files["png"]:
                map_view.write_png(heap, title, files["png"])
            else:
                page.save(files["html"], map_view.html(heap, title))
    except ModuleNotFoundError as error:
        raise ViewError(f"map --{named[0]} needs the Python package {error.name}; without it map prints text") from error
    print(f"hakmem: {'page' if files['html'] else 'picture'}: {files[named[0]]}", file=sys.stderr)


def _map(words: list[str]) -> None:
    at = words.index("--") if "--" in words else len(words)
    own = words[at + 1:]
    parser = _Words("map", add_help=False)
    parser.add_argument("target", metavar="PID|CORE", nargs="?")
    for name in ("html", "svg", "png"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    given = parser.parse_args(words[:at])
    files = {"html": given.html, "svg": given.svg, "png": given.png}
    if bool(own) == bool(given.target):
        raise ViewError("map: either a PID, a core file, or a program behind -- is wanted")
    if not own:
        where = observer.find(given.target)
        heap = read(Map.of, where.document("map"), where.what("map"))
        heap.rss_bytes = where.rss()
        _draw(heap, where.title(), files)
        return
    ended = own_program.run(own, [])
    name = os.path.basename(own[0])
    if ended.report is None:
        raise ViewError(f"{name} left no map ({ended.how()}): one is written when a process on hakmem ends by exit")
    heap = read(Map.of, parse(ended.report, f"the map of {name}"), f"the map of {name}")
    _draw(heap, f"{name} (process {heap.pid or ended.pid}) at its end", files)
    sys.stdout.flush()
    sys.exit(ended.status)


COMMANDS = {"top": _top, "map": _map}
