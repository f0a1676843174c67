# SPDX-License-Identifier: MIT
"""What `./hakmem profile` shows of a profile, in words: head lines, columns, a row a site. By the standard library alone;
`lines` is the text of it, `profile_view.py` the table with colours."""
from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Callable, Optional

from .profile_model import LIKELY, Growth, Profile, Site, Value, difference
from .profile_names import Named
from .wording import NONE, clip, count, duration, number, share, size

MOST = 20  # rows, unless asked for more
FOOT = "±: 95 of 100 estimates are that near to the truth"
LEGEND = {"Slack": "unused ends of blocks", "Pinned": "free memory that its blocks keep resident", "Kept": "share of what was allocated "
          "that is in use", "p50": "half of the freed blocks lived for so long or less (p99: 99 of 100)", "Oldest": "age of the oldest in use",
          "Alloc": "allocated a second", "Still live": "sampled blocks in use"}


@dataclass
class Row:
    """A site, or a site in a thread."""

    site: Site
    value: float  # what it is ordered by
    growth: Optional[Growth] = None
    allocated: float = 0.0  # of the time that rates are of
    thread: int = 0  # 0: others than those that the profile lists
    cells: list[str] = field(default_factory=list)
    where: str = ""
    chain: str = ""


Column = tuple[str, Callable[[Row], str]]


def percent_error(value: Value | float, error: float) -> str:
    """Of the value; of nothing there is none."""
    amount = value.bytes if isinstance(value, Value) else value
    return f"{100 * error / amount:.0f} %" if amount > 0 else NONE


def _life(nanoseconds: int, freed: int) -> str:
    if not freed:
        return NONE
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.0f} us"
    return duration(nanoseconds / 1e9)


def life(site: Site, name: str) -> str:
    return _life(getattr(site.lifetimes, name), site.lifetimes.freed)


def oldest(site: Site) -> str:
    return duration(site.lifetimes.oldest / 1e9) if site.lifetimes.oldest else NONE


def signed(value: float) -> str:
    return ("+" if value > 0 else "") + size(value)


INUSE: Column = ("In use", lambda row: size(row.site.inuse.bytes))
INUSE_ERROR: Column = ("±", lambda row: percent_error(row.site.inuse, row.site.error))
OBJECTS: Column = ("Objects", lambda row: number(round(row.site.inuse.objects)))
PINNED: Column = ("Pinned", lambda row: size(row.site.pinned))
SLACK: Column = ("Slack", lambda row: size(row.site.slack))
KEPT: Column = ("Kept", lambda row: share(row.site.kept, 1))
OLDEST: Column = ("Oldest", lambda row: oldest(row.site))
GROWN: tuple[Column, ...] = (
    ("Grown", lambda row: signed(row.growth.bytes) if row.growth else NONE),
    ("± bytes", lambda row: size(row.growth.error) if row.growth else NONE))


def _lifetime(name: str, key: str) -> Column:
    return name, lambda row: life(row.site, key)


def rate_column(seconds: float) -> Column:
    return "Alloc", lambda row: f"{size(row.allocated / seconds)}/s" if seconds > 0 else NONE


def _add_rates(rows: list[Row], found: Profile, since: Optional[Profile]) -> float:
    """What was allocated since an older profile, else since the start if sampling was on all the time. Returns the seconds of
    that; 0: nobody knows for how long sampling was on."""
    if since is not None and since.is_on:
        of = {id(one.site): one.allocated for one in difference(since, found)}
        for row in rows:
            row.allocated = of.get(id(row.site), 0.0)
        return max(0.0, found.time - since.time)
    for row in rows:
        row.allocated = row.site.alloc.bytes
    return found.seconds if found.is_whole and found.is_on else 0.0


@dataclass
class Mode:
    """One way to look at the sites: its order and its columns; the rate of allocations is added where it is wanted."""

    title: str
    order: Callable[[Row], float]
    columns: tuple[Column, ...]
    has_rate: bool = False


MODES = {
    "inuse": Mode("by bytes in use", lambda row: row.site.inuse.bytes,
                  (INUSE, INUSE_ERROR, OBJECTS, SLACK, PINNED, _lifetime("p50", "p50"), _lifetime("p99", "p99")), True),
    "alloc": Mode("by bytes allocated", lambda row: row.site.alloc.bytes,
                  (("Allocated", lambda row: size(row.site.alloc.bytes)),
                   ("±", lambda row: percent_error(row.site.alloc, row.site.alloc.error)),
                   ("Objects", lambda row: number(round(row.site.alloc.objects))), KEPT, _lifetime("p50", "p50"),
                   _lifetime("p99", "p99")), True),
    "peak": Mode("by bytes at the peak", lambda row: row.site.peak.bytes,
                 (("At peak", lambda row: size(row.site.peak.bytes)),
                  ("±", lambda row: percent_error(row.site.peak, row.site.peak.error)),
                  ("Objects", lambda row: number(round(row.site.peak.objects))), ("In use now", INUSE[1]))),
    "pinned": Mode("by free bytes that its blocks keep resident", lambda row: row.site.pinned,
                   (PINNED, INUSE, INUSE_ERROR, OBJECTS, OLDEST)),
    "lifetimes": Mode("by bytes allocated", lambda row: row.site.alloc.bytes,
                      (("Freed", lambda row: number(row.site.lifetimes.freed)), _lifetime("p10", "p10"),
                       _lifetime("p50", "p50"), _lifetime("p90", "p90"), _lifetime("p99", "p99"),
                       ("Still live", lambda row: number(row.site.lifetimes.censored)), OLDEST)),
    "leaks": Mode("by bytes that stay", lambda row: row.growth.bytes if row.growth else row.site.inuse.bytes * row.site.kept,
                  (INUSE, INUSE_ERROR, OBJECTS, *GROWN, KEPT, OLDEST)),
    "diff": Mode("by growth", lambda row: row.growth.bytes if row.growth else 0.0,
                 (*GROWN, ("Objects", lambda row: number(round(row.growth.objects)) if row.growth else NONE), INUSE,
                  INUSE_ERROR), True),
    "threads": Mode("by thread and bytes in use", lambda row: row.value,
                    (("Thread", lambda row: str(row.thread or "others")), ("In use", lambda row: size(row.value)), ("Of site", INUSE[1]))),
}


@dataclass
class Report:
    head: list[str]
    title: str
    columns: list[str]
    rows: list[Row]
    left: str  # what the rows that are not shown have together; "" if all are; why there is none


def head(found: Profile, title: str) -> list[str]:
    """Whose profile it is, how good, and what is missing in it."""
    state = "" if found.is_on else ", sampling is off now"
    since = f" for {duration(found.seconds)}" if found.started else ""
    lines = [f"{title}: {size(found.estimate)} ± {size(found.error)} in use at {count(len(found.sites), 'site')}; one sample "
             f"per {size(found.rate)}{since}{state}"]
    if found.exact_bytes is not None and found.exact_bytes > 0:
        lines.append(_check(found, found.exact_bytes))
    lost = [count(found.samples[key], noun) for key, noun in (("dropped", "sample"), ("sites_dropped", "site"))
            if found.samples[key]]
    if lost:
        lines.append(f"{' and '.join(lost)} found no room and are missing: raise profile_bytes or the rate.")
    return lines


def _check(found: Profile, exact: int) -> str:
    """The sum of the estimates beside what the library counts."""
    if not found.is_whole:
        return f"The library counts {size(exact)}; blocks allocated before sampling began are not in the profile."
    percent = 100 * (found.estimate - exact) / exact
    away = f"{abs(percent):.1f} % {'above' if percent > 0 else 'below'}" if abs(percent) >= 0.05 else "the same"
    return f"The library counts {size(exact)}; the estimate is {away}."


def _thread_rows(found: Profile) -> list[Row]:
    """The busiest thread first, and the sites of each together; last what others have."""
    totals: dict[int, float] = {}
    rows = [Row(site, amount, thread=thread) for site in found.sites for thread, amount in site.threads if amount > 0]
    for site in found.sites:  # the library lists the largest of each site
        left = site.inuse.bytes - sum(amount for _, amount in site.threads)
        if site.threads and left > 0.01 * site.inuse.bytes:
            rows.append(Row(site, left))
    for row in rows:
        totals[row.thread] = totals.get(row.thread, 0.0) + row.value
    return sorted(rows, key=lambda row: (not row.thread, -totals[row.thread], row.thread, -row.value))


def _rows(found: Profile, mode: str, before: Optional[Profile]) -> list[Row]:
    if mode == "threads":
        return _thread_rows(found)
    grown = difference(before, found) if before is not None else []
    rows = [Row(one.site, 0.0, one) for one in grown] if before is not None else [Row(site, 0.0) for site in found.sites]
    for row in rows:
        row.value = MODES[mode].order(row)
    kept = [row for row in rows if row.value > 0 or mode == "diff" and row.value]
    return sorted(kept, key=lambda row: -row.value)


def _without_site(before: Profile, found: Profile, rows: list[Row]) -> list[str]:
    """What of the growth that the library counts no site has."""
    if before.exact_bytes is None or found.exact_bytes is None:
        return []
    exact, known = found.exact_bytes - before.exact_bytes, sum(row.growth.bytes for row in rows if row.growth)
    if exact <= 0 or exact - known <= LIKELY * math.hypot(before.sigma, found.sigma):
        return []
    return [f"The library counts {size(exact)} more in use, of which {size(exact - known)} are at no site: they were allocated "
            "while sampling was off (--keep leaves it on)."]


def nothing(found: Profile, mode: str) -> str:
    """Why there is no row, and what would have one."""
    if found.sites:
        return NONE_HAS.get(mode, "No site has any.")
    if found.is_on:
        return "Nothing was sampled so far: wait longer (--seconds), or sample more (--rate 64k)."
    return "Nothing was sampled: sampling is off. Name a running process, or start the program by profile -- PROGRAM."


def make(named: Named, title: str, mode: str = "inuse", before: Optional[Profile] = None, most: int = MOST,
         since: Optional[Profile] = None) -> Report:
    """`before`: an older profile, which growth refers to; `most`: rows, 0 for all; `since`: an older profile of the same
    process, which rates refer to."""
    found, kind = named.profile, MODES[mode]
    rows = _rows(found, mode, before)
    shown = rows[:most] if most and mode != "diff" else rows
    if most and mode == "diff" and len(rows) > most:  # what has grown, and what has shrunk
        low = sum(row.value < 0 for row in rows[-most // 4:])
        shown = rows[:most - low] + rows[len(rows) - low:]
    columns = list(kind.columns)
    if kind.has_rate:
        is_same = before is not None and before.pid == found.pid and found.is_whole  # of another run times mean nothing
        columns.insert(3, rate_column(_add_rates(shown, found, since or (before if is_same else None))))
    for row in shown:
        row.cells = [cell(row) for _, cell in columns]
        row.where, row.chain = named.where(row.site), named.chain(row.site)
    left = sum(row.value for row in rows) - sum(row.value for row in shown)
    lines = head(found, title)
    if before is not None:
        lines.append(f"Growth is that of {duration(max(0.0, found.time - before.time))}.")
        lines += _without_site(before, found, rows) if mode == "diff" else []
    if mode == "peak" and found.peak_bytes:
        lines.append(f"The peak was {size(found.peak_bytes)}, {duration(max(0.0, found.time - found.peak_time))} before.")
    if not rows:
        return Report(lines, kind.title, [], [], nothing(found, mode))
    return Report(lines, kind.title, [name for name, _ in columns], shown,
                  f"{count(len(rows) - len(shown), 'more site')}, {size(left)} together" if len(rows) > len(shown) else "")


NONE_HAS = {"pinned": "No block that was sampled keeps free memory resident.", "diff": "No site has grown or shrunk.",
            "leaks": "No site has grown, or holds what stays.", "alloc": "Nothing was allocated while it sampled."}


def foot(report: Report) -> str:
    """What columns mean."""
    said = [f"{name}: {LEGEND[name]}" for name in report.columns if name in LEGEND]
    return "; ".join([FOOT, *said]) if any(name.startswith("±") for name in report.columns) else "; ".join(said)


def lines(report: Report, width: int = 80) -> list[str]:
    """Plain text; the place of a site stands in a line of its own below its figures."""
    found = [piece for line in report.head for piece in textwrap.wrap(line, max(width, 60), break_on_hyphens=False)]
    if not report.rows:
        return found + ["", report.left]
    widths = [max(len(name), *(len(row.cells[at]) for row in report.rows)) for at, name in enumerate(report.columns)]
    found += ["", f"Sites {report.title}", "  ".join(name.rjust(wide) for name, wide in zip(report.columns, widths))]
    for row in report.rows:
        found.append("  ".join(cell.rjust(wide) for cell, wide in zip(row.cells, widths)))
        found.append(clip(f"    {row.where}{f'  < {row.chain}' if row.chain else ''}", max(width, 60)))
    found += [report.left] if report.left else []
    return found + textwrap.wrap(foot(report), max(width, 60), break_on_hyphens=False)


__all__ = ["LIKELY", "MODES", "MOST", "Report", "Row", "foot", "head", "life", "lines", "make", "nothing", "oldest", "percent_error"]
