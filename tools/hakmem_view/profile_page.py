# SPDX-License-Identifier: MIT
"""The page of a heap profile: flame graph and icicle by a script of its own, the sites as a table that needs none."""
from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass, field

from markupsafe import Markup

from . import page, profile_report, profile_sizes
from .installed import page as installed_page
from .profile_group import Row, grouped
from .profile_model import KINDS, Kind, Profile, Site, difference
from .profile_names import Named, at_line, short
from .wording import NONE, count, duration, number, share, size

MOST_ROWS, MOST_STACKS, MOST_FRAMES = 200, 3000, 60
MOST_NAME = 400  # letters of a function's name in the graph
LINES = 5  # of growth
FILLS = ("#f2b880", "#8fc7e8", "#a8d8a0", "#e8a5b8", "#cbb8ea", "#e6d98a", "#9fd9d0", "#d2c4b4")  # as in profile.js
STROKES = ("#5b6270", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b8860b")
COLUMNS = ("In use", "With calls", "Objects", "Allocated", "Per second", "Peak", "Slack", "Pinned", "Life p99", "Oldest")
GROWN = "Grown"
DIFFERENCE = Kind("diff", "difference", lambda site: site.inuse.bytes)  # in the graph alone: of two profiles


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
class Tick:
    place: float  # percent from the top, or from the left
    text: str


@dataclass
class Growth:
    amounts: list[Tick]  # the largest first
    times: list[Tick]
    lines: list[Line]
    rss: Line | None  # of the process


def _points(values: list[float], times: list[float], most: float) -> str:
    """In a square of 100, or of 1000 × 100, the first time left."""
    span = max(times[-1] - times[0], 1e-9)
    return " ".join(f"{1000 * (time - times[0]) / span:.1f},{98 - 96 * value / most if most > 0 else 98:.1f}"
                    for value, time in zip(values, times))


def scale(most: float) -> list[float]:
    """From 0 to a round number that is as large, in at most six steps of 1, 2 or 5 of a unit."""
    most = max(most, 4)
    unit = 1024.0 ** int(math.log(most, 1024))
    steps = (factor * unit for factor in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500))
    step = next((one for one in steps if most <= 6 * one), 500 * unit)
    return [step * at for at in range(max(1, math.ceil(most / step)) + 1)]


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
    resident = [float(shot.rss) for shot in shots if shot.rss]
    ticks = scale(max([*totals, *resident]))
    most = ticks[-1]
    sites = {named.profile.key(site): site for site in named.profile.sites}
    moved = sorted((key for key in histories if key in sites), key=lambda key: -abs(histories[key][-1] - histories[key][0]))
    rows = [("all", totals)] + [(named.where(sites[key]), histories[key]) for key in moved[:LINES]]
    lines = [Line(name, _points(values, times, most), STROKES[at], size(values[0]), size(values[-1]))
             for at, (name, values) in enumerate(rows)]
    rss = Line("RSS of the process", _points(resident, times, most), "", size(resident[0]), size(resident[-1])) \
        if len(resident) == len(shots) else None
    seconds = times[-1] - times[0]
    return Growth([Tick(98 - 96 * one / most, size(one) if one else "0") for one in reversed(ticks)],
                  [Tick(25 * at, duration(seconds * at / 4) if at else "0 s") for at in range(5)], lines, rss)


def _cells(row: Row, found: Profile, most: float) -> list[Cell]:
    site, lives, seconds = row.site, row.site.lifetimes, found.seconds
    p99 = profile_report.life(site, "p99") if row.stacks == 1 else NONE
    return [Cell(size(site.inuse.bytes), site.inuse.bytes, profile_report.error_words(site.inuse, site.error), 100 * site.inuse.bytes / most if most else 0),
            Cell(size(row.inclusive), row.inclusive),
            Cell(number(round(site.inuse.objects)), site.inuse.objects), Cell(size(site.alloc.bytes), site.alloc.bytes),
            Cell(f"{size(site.alloc.bytes / seconds)}/s" if seconds else NONE, site.alloc.bytes),
            Cell(size(site.peak.bytes), site.peak.bytes), Cell(size(site.slack), site.slack),
            Cell(size(site.pinned) if found.knows_pinned else NONE, site.pinned), Cell(p99, lives.p99 if p99 != NONE else -1),
            Cell(profile_report.oldest(site), lives.oldest)]


def _frames(row: Row, named: Named) -> list[str]:
    """Of its largest stack, and what the others have."""
    found = [f"{short(frame.function)}{at_line(frame)}{', inlined' if frame.is_inlined else ''}"
             for frame, _ in named.stack(row.sites[0])[:MOST_FRAMES]]
    others = row.sites[1:]
    return found + [f"and {count(len(others), 'more stack')}, {size(sum(site.inuse.bytes for site in others))} in use"] * bool(others)


def _rows(shots: list[Profile], named: Named) -> tuple[list[Listed], str]:
    """The functions that allocate most, and what is left out in words."""
    found = named.profile
    histories = _histories(shots) if len(shots) > 1 else {}
    grown = {found.key(one.site): one for one in difference(shots[0], found)} if histories else {}
    sites = [Row(site, site.inuse.bytes, grown.get(found.key(site)) if histories else None) for site in named.sites]
    ordered = [row for row in grouped(sites, named, "function", lambda row: row.site.inuse.bytes) if row.sites]
    ordered.sort(key=lambda row: (-row.value, -row.site.alloc.bytes))
    most = ordered[0].value if ordered else 0
    rows = []
    for one in ordered[:MOST_ROWS]:
        name = short(named.own(one.sites[0])[0].function)
        row = Listed(name, one.where.removeprefix(name).strip(), _frames(one, named), _cells(one, found, most))
        if histories and one.growth:
            values = [sum(column) for column in zip(*(histories[key] for key in {found.key(site) for site in one.sites}))]
            row.cells.append(Cell(profile_report.signed(one.growth.bytes), one.growth.bytes, f"± {size(one.growth.error)}",
                                  points=_spark(values, [shot.time for shot in shots])))
        rows.append(row)
    left = ordered[MOST_ROWS:]
    return rows, f"{count(len(left), 'more function')}, {size(sum(row.value for row in left))} in use" if left else ""


def _spark(values: list[float], times: list[float]) -> str:
    pairs = (pair.split(",") for pair in _points(values, times, max(values)).split())
    return " ".join(f"{float(x) / 10:.1f},{y}" for x, y in pairs)


def _before(shots: list[Profile], named: Named) -> tuple[dict[int, float], list[tuple[Site, float]]]:
    """Bytes in use at first, by the identity of sites; and the sites that are gone, with theirs."""
    if len(shots) < 2:
        return {}, []
    found = difference(shots[0], named.profile)
    there = {id(site) for site in named.sites}
    gone = [(one.site, -one.bytes) for one in found if id(one.site) not in there and not one.site.inuse.bytes and one.bytes < 0]
    named.learn(site for site, _ in gone)
    return {id(one.site): max(0.0, one.site.inuse.bytes - one.bytes) for one in found}, [one for one in gone if named.shows(one[0])]


def _was(amount: float | None) -> dict[str, float]:
    return {} if amount is None else {"was": round(amount, 1)}


def _data(named: Named, shots: list[Profile]) -> tuple[str, list[str]]:
    """What the graph is drawn from, as JSON that no tag of HTML can end; and the modules, in the order of their numbers."""
    kinds = list(KINDS.values())
    before, gone = _before(shots, named)
    frames: dict[tuple[str, int], int] = {}
    modules: dict[str, int] = {}
    sites: list[dict] = []
    ordered = sorted(named.sites, key=lambda site: -max(site.inuse.bytes, site.peak.bytes, site.alloc.bytes))
    for site in ordered[:MOST_STACKS]:
        stack = [frames.setdefault((frame.function[:MOST_NAME], modules.setdefault(module, len(modules))), len(frames))
                 for frame, module in reversed(named.stack(site))]
        sites.append({"s": stack, "v": [round(kind.of(site), 1) for kind in kinds], **_was(before.get(id(site)))})
    for site, was in gone[:MOST_STACKS]:
        stack = [frames.setdefault((frame.function[:MOST_NAME], modules.setdefault(module, len(modules))), len(frames))
                 for frame, module in reversed(named.stack(site))]
        sites.append({"s": stack, "v": [0] * len(kinds), **_was(was)})
    left = ordered[MOST_STACKS:]
    if left:
        key = (f"{len(left)} smaller sites", modules.setdefault("", len(modules)))
        sites.append({"s": [frames.setdefault(key, len(frames))],
                      "v": [round(math.fsum(kind.of(site) for site in left), 1) for kind in kinds],
                      **_was(math.fsum(before.get(id(site), 0.0) for site in left) if before else None)})
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
    return (f"{share(first.inuse.bytes, whole)} is held by blocks of {rows[0].where}: "
            f"{profile_report.with_error(first.inuse, first.error, False)} in {count(round(first.inuse.objects), 'object')}.{pinned}")


def html(shots: list[Profile], named: Named, title: str, kind: str) -> str:
    """`shots`: the oldest first; the last is that of `named`."""
    script = (page.TEMPLATES / "profile.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data, modules = _data(named, shots)
    rows, left = _rows(shots, named)
    growth = _growth(shots, named)
    legend = [(name, FILLS[at % len(FILLS)]) for at, name in enumerate(modules[:2 * len(FILLS)]) if name]
    style = (page.TEMPLATES / "profile.css").read_text(encoding="utf-8")
    return page.render("profile.html.j2", found=named.profile, title=title, head=_head(named.profile, title), lead=lead(named),
                       kinds=[*KINDS.values(), *([DIFFERENCE] if growth else [])], chosen=kind, modules=legend, growth=growth, foot=profile_report.FOOT,
                       sizes=_sizes(named), columns=[*COLUMNS, *([GROWN] if growth else [])], rows=rows, left=left, hash=f"sha256-{digest}",
                       words=installed_page("words"), own_style=Markup(style), data=Markup(data), script=Markup(script))


def _sizes(named: Named) -> list[tuple[str, Cell, str, str]]:
    """Of each range of sizes its name, bytes, objects, and the function that holds most of it."""
    bins = profile_sizes.bins(named)
    most = max((one.value.bytes for one in bins), default=0.0)
    return [(one.name, Cell(size(one.value.bytes), one.value.bytes, profile_report.error_words(one.value, one.error),
                            100 * one.value.bytes / most if most else 0.0), number(round(one.value.objects)),
             f"{one.where} ({share(one.part, 1)})") for one in bins]


def _head(found: Profile, title: str) -> list[str]:
    lines = profile_report.head(found, title)
    begin = lines[0].removeprefix(f"{title}: ")
    return [begin[:1].upper() + begin[1:] + ".", *lines[1:]]
