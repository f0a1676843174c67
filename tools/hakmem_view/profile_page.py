# SPDX-License-Identifier: MIT
"""The page of a heap profile: flame graph and icicle by a script of its own, the sites as a table that needs none."""
from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass, field

from markupsafe import Markup

from . import page, profile_report
from .profile_group import Row, grouped
from .profile_model import KINDS, Profile, Site, difference
from .profile_names import Named, at_line, short
from .wording import count, duration, number, share, size

MOST_ROWS, MOST_STACKS, MOST_FRAMES = 200, 3000, 60
MOST_NAME = 400  # letters of a function's name in the graph
LINES = 5  # of growth
FILLS = ("#f2b880", "#8fc7e8", "#a8d8a0", "#e8a5b8", "#cbb8ea", "#e6d98a", "#9fd9d0", "#d2c4b4")  # as in profile.js
STROKES = ("#5b6270", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b")
COLUMNS = ("In use", "Objects", "Allocated", "Per second", "Peak", "Slack", "Pinned", "Life p50", "Life p99", "Oldest")
GROWN = "Grown"


@dataclass
class Cell:
    text: str
    value: float  # that it is ordered by
    error: str = ""
    bar: float = 0.0  # percent of the longest
    points: str = ""  # of its line over time


@dataclass
class Listed:
    where: str
    file: str
    frames: list[str]
    cells: list[Cell] = field(default_factory=list)


@dataclass
class Line:
    name: str
    points: str
    colour: str
    first: str
    last: str


@dataclass
class Growth:
    most: str
    begin: str
    end: str
    lines: list[Line]


def _points(values: list[float], times: list[float], most: float) -> str:
    """In a square of 100, or of 1000 × 100, the first time left."""
    span = max(times[-1] - times[0], 1e-9)
    return " ".join(f"{1000 * (time - times[0]) / span:.1f},{98 - 96 * value / most if most > 0 else 98:.1f}"
                    for value, time in zip(values, times))


def _histories(shots: list[Profile]) -> dict[tuple, list[float]]:
    """Bytes in use of each site in each profile."""
    found: dict[tuple, list[float]] = {}
    for at, shot in enumerate(shots):
        for site in shot.sites:
            found.setdefault(shot.key(site), [0.0] * len(shots))[at] += site.inuse.bytes
    return found


def _growth(shots: list[Profile], named: Named) -> Growth | None:
    """The whole, and the sites that moved most."""
    if len(shots) < 2:
        return None
    histories, times = _histories(shots), [shot.time for shot in shots]
    totals = [sum(site.inuse.bytes for site in shot.sites) for shot in shots]
    most = max(totals)
    sites = {named.profile.key(site): site for site in named.profile.sites}
    moved = sorted((key for key in histories if key in sites), key=lambda key: -abs(histories[key][-1] - histories[key][0]))
    rows = [("all", totals)] + [(named.where(sites[key]), histories[key]) for key in moved[:LINES]]
    lines = [Line(name, _points(values, times, most), STROKES[at], size(values[0]), size(values[-1]))
             for at, (name, values) in enumerate(rows)]
    return Growth(size(most), "start", duration(times[-1] - times[0]), lines)


def _cells(site: Site, seconds: float, most: float) -> list[Cell]:
    lives = site.lifetimes
    return [Cell(size(site.inuse.bytes), site.inuse.bytes, f"± {profile_report.percent_error(site.inuse, site.error)}"
                 if site.inuse.bytes else "", 100 * site.inuse.bytes / most if most else 0),
            Cell(number(round(site.inuse.objects)), site.inuse.objects), Cell(size(site.alloc.bytes), site.alloc.bytes),
            Cell(f"{size(site.alloc.bytes / seconds)}/s" if seconds else "–", site.alloc.bytes),
            Cell(size(site.peak.bytes), site.peak.bytes), Cell(size(site.slack), site.slack),
            Cell(size(site.pinned), site.pinned),
            *(Cell(profile_report.life(site, key), getattr(lives, key) if lives.freed else -1) for key in ("p50", "p99")),
            Cell(profile_report.oldest(site), lives.oldest)]


def _rows(shots: list[Profile], named: Named) -> tuple[list[Listed], str]:
    """The largest sites, and what is left out in words."""
    found = named.profile
    ordered = sorted(named.sites, key=lambda site: (-site.inuse.bytes, -site.alloc.bytes))
    most = max((site.inuse.bytes for site in ordered), default=0)
    histories = _histories(shots) if len(shots) > 1 else {}
    grown = {found.key(one.site): one for one in difference(shots[0], found)} if histories else {}
    rows = []
    for site in ordered[:MOST_ROWS]:
        first = named.callers(site)[0][0]
        frames = [f"{short(frame.function)}{at_line(frame)}{', inlined' if frame.is_inlined else ''}"
                  for frame, _ in named.stack(site)[:MOST_FRAMES]]
        row = Listed(short(first.function), named.where(site).removeprefix(short(first.function)).strip(), frames, _cells(site, found.seconds, most))
        if histories:
            key = found.key(site)
            values, one = histories[key], grown[key]
            row.cells.append(Cell(profile_report.signed(one.bytes), one.bytes, f"± {size(one.error)}",
                                  points=_spark(values, [shot.time for shot in shots])))
        rows.append(row)
    left = ordered[MOST_ROWS:]
    return rows, f"{count(len(left), 'more site')}, {size(sum(site.inuse.bytes for site in left))} in use" if left else ""


def _spark(values: list[float], times: list[float]) -> str:
    pairs = (pair.split(",") for pair in _points(values, times, max(values)).split())
    return " ".join(f"{float(x) / 10:.1f},{y}" for x, y in pairs)


def _data(named: Named) -> tuple[str, list[str]]:
    """What the graph is drawn from, as JSON that no tag of HTML can end; and the modules, in the order of their numbers."""
    kinds = list(KINDS.values())
    frames: dict[tuple[str, int], int] = {}
    modules: dict[str, int] = {}
    sites: list[dict] = []
    ordered = sorted(named.sites, key=lambda site: -max(site.inuse.bytes, site.peak.bytes, site.alloc.bytes))
    for site in ordered[:MOST_STACKS]:
        stack = [frames.setdefault((frame.function[:MOST_NAME], modules.setdefault(module, len(modules))), len(frames))
                 for frame, module in reversed(named.stack(site))]
        sites.append({"s": stack, "v": [round(kind.of(site), 1) for kind in kinds]})
    left = ordered[MOST_STACKS:]
    if left:
        key = (f"{len(left)} smaller sites", modules.setdefault("", len(modules)))
        sites.append({"s": [frames.setdefault(key, len(frames))],
                      "v": [round(math.fsum(kind.of(site) for site in left), 1) for kind in kinds]})
    text = json.dumps({"kinds": [{"unit": kind.unit} for kind in kinds], "frames": list(frames), "modules": list(modules),
                       "sites": sites}, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"), list(modules)


def lead(named: Named) -> str:
    """The function that holds most, in a sentence."""
    rows = grouped([Row(site, site.inuse.bytes) for site in named.sites if site.inuse.bytes > 0], named, "function")
    whole = sum(row.value for row in rows)
    if not whole:
        return "No block that was sampled is in use."
    first = rows[0].site
    pinned = f" They keep {size(first.pinned)} of free memory resident." if first.pinned > first.inuse.bytes / 10 else ""
    return (f"{share(first.inuse.bytes, whole)} is held by blocks of {rows[0].where}: {size(first.inuse.bytes)} ± "
            f"{size(first.error)} in {count(round(first.inuse.objects), 'object')}.{pinned}")


def html(shots: list[Profile], named: Named, title: str, kind: str) -> str:
    """`shots`: the oldest first; the last is that of `named`."""
    script = (page.TEMPLATES / "profile.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data, modules = _data(named)
    rows, left = _rows(shots, named)
    growth = _growth(shots, named)
    legend = [(name, FILLS[at % len(FILLS)]) for at, name in enumerate(modules[:2 * len(FILLS)]) if name]
    style = (page.TEMPLATES / "profile.css").read_text(encoding="utf-8")
    return page.render("profile.html.j2", found=named.profile, title=title, head=_head(named.profile, title), lead=lead(named),
                       kinds=list(KINDS.values()), chosen=kind, modules=legend, growth=growth, foot=profile_report.FOOT,
                       columns=[*COLUMNS, *([GROWN] if growth else [])], rows=rows, left=left, hash=f"sha256-{digest}",
                       own_style=Markup(style), data=Markup(data), script=Markup(script))


def _head(found: Profile, title: str) -> list[str]:
    lines = profile_report.head(found, title)
    begin = lines[0].removeprefix(f"{title}: ")
    return [begin[:1].upper() + begin[1:] + ".", *lines[1:]]
