# SPDX-License-Identifier: MIT
"""What `./hakmem profile` shows of a profile, in words: head lines, columns, a row a function, line or site. By the standard
library alone; `lines` is the text of it, `profile_view.py` the table with colours."""
from __future__ import annotations

import math
import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import Callable, Optional

from .installed import page
from .profile_group import BY, CALLERS, EMPTY, Row, grouped
from .profile_model import LIKELY, Profile, Site, Value, difference
from .profile_names import Named
from .wording import NONE, clip, count, duration, number, share, size

MOST = 20  # rows, unless asked for more
FOOT = "±: 95 of 100 estimates are that near to the truth"
FEW = "1 to 3 samples: the truth may be none or several times that"
LEGEND = {"Slack": "unused ends of blocks", "Pinned": "free memory that their blocks keep resident", "Kept": "share of what was allocated "
          "that is in use", "p50": "half of the freed blocks lived for so long or less (p99: 99 of 100)", "Oldest": "age of the oldest in use",
          "Alloc": "allocated a second", "Still live": "sampled blocks in use", "With calls": "of it and all that it calls"}


Column = tuple[str, Callable[[Row], str]]


def error_cell(value: Value, error: float) -> str:
    """In percent of the value; of nothing there is none. An error as large as the value says less than the number of samples."""
    if 0 < value.bytes <= error and value.samples:
        return count(value.samples, "sample")
    return f"{100 * error / value.bytes:.0f} %" if value.bytes > 0 else NONE


def error_words(value: Value, error: float) -> str:
    """Beside a figure."""
    said = error_cell(value, error)
    return "" if said == NONE else f"± {said}" if said[-1] == "%" else f"({said})"


def with_error(value: Value, error: float, in_percent: bool = True) -> str:
    """Bytes and their error."""
    said = error_words(value, error)
    return f"{size(value.bytes)} {said if in_percent or said[:1] == '(' else f'± {size(error)}'}".rstrip()


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
INUSE_ERROR: Column = ("±", lambda row: error_cell(row.site.inuse, row.site.error))
OBJECTS: Column = ("Objects", lambda row: number(round(row.site.inuse.objects)))
PINNED: Column = ("Pinned", lambda row: size(row.site.pinned))
SLACK: Column = ("Slack", lambda row: size(row.site.slack))
KEPT: Column = ("Kept", lambda row: share(row.site.kept, 1))
TEMPORARY: Column = ("Temporary", lambda row: share(row.site.lifetimes.temporary, row.site.lifetimes.freed))
OLDEST: Column = ("Oldest", lambda row: oldest(row.site))
GROWN: tuple[Column, ...] = (
    ("Grown", lambda row: signed(row.growth.bytes) if row.growth else NONE),
    ("± bytes", lambda row: size(row.growth.error) if row.growth else NONE))


def _lifetime(name: str, key: str) -> Column:
    return name, lambda row: life(row.site, key)


INCLUSIVE: Column = ("With calls", lambda row: size(row.inclusive))


def rate_column(seconds: float) -> Column:
    return "Alloc", lambda row: f"{size(row.allocated / seconds)}/s" if seconds > 0 else NONE


def _add_rates(rows: list[Row], found: Profile, since: Optional[Profile]) -> float:
    """To rows of sites. What was allocated since an older profile, else since the start if sampling was on all the time. Returns the seconds of
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
    has_calls: bool = False  # what functions hold with all that they call


MODES = {
    "inuse": Mode("by bytes in use", lambda row: row.site.inuse.bytes,
                  (INUSE, INUSE_ERROR, OBJECTS, SLACK, PINNED, _lifetime("p50", "p50"), _lifetime("p99", "p99")), True, True),
    "alloc": Mode("by bytes allocated", lambda row: row.site.alloc.bytes,
                  (("Allocated", lambda row: size(row.site.alloc.bytes)),
                   ("±", lambda row: error_cell(row.site.alloc, row.site.alloc.error)),
                   ("Objects", lambda row: number(round(row.site.alloc.objects))), KEPT, _lifetime("p50", "p50"),
                   _lifetime("p99", "p99")), True, True),
    "peak": Mode("by bytes at the peak", lambda row: row.site.peak.bytes,
                 (("At peak", lambda row: size(row.site.peak.bytes)),
                  ("±", lambda row: error_cell(row.site.peak, row.site.peak.error)),
                  ("Objects", lambda row: number(round(row.site.peak.objects))), ("In use now", INUSE[1])), has_calls=True),
    "pinned": Mode("by free bytes that their blocks keep resident", lambda row: row.site.pinned,
                   (PINNED, INUSE, INUSE_ERROR, OBJECTS, OLDEST)),
    "lifetimes": Mode("by bytes allocated", lambda row: row.site.alloc.bytes,
                      (("Freed", lambda row: number(row.site.lifetimes.freed)), TEMPORARY, _lifetime("p10", "p10"),
                       _lifetime("p50", "p50"), _lifetime("p90", "p90"), _lifetime("p99", "p99"),
                       ("Still live", lambda row: number(row.site.lifetimes.censored)), OLDEST)),
    "leaks": Mode("by bytes that stay", lambda row: row.growth.bytes if row.growth else row.site.inuse.bytes * row.site.kept,
                  (INUSE, INUSE_ERROR, OBJECTS, *GROWN, KEPT, OLDEST)),
    "diff": Mode("by growth", lambda row: row.growth.bytes if row.growth else 0.0,
                 (*GROWN, ("Objects", lambda row: number(round(row.growth.objects)) if row.growth else NONE), INUSE,
                  INUSE_ERROR), True),
    "threads": Mode("by thread and bytes in use", lambda row: row.value,
                    (("Thread", lambda row: row.thread or "others"), ("In use", lambda row: size(row.value)), ("Of site", INUSE[1]))),
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
    if not found.rate and not found.sites:
        return [f"{title}: no profile, as sampling is off"]
    state = "" if found.is_on else ", sampling is off now"
    # Who sampled before us may have paused.
    since = (f" for {duration(found.seconds)}" if found.is_whole else f", begun {duration(found.seconds)} before") if found.started else ""
    sites = sum(site.inuse.bytes > 0 for site in found.sites) or len(found.sites)
    whole = Value(found.samples["live"], 0, found.estimate)
    amount = f"{with_error(whole, found.error, False)} in use" if found.estimate or not found.sites else "nothing sampled is in use"
    lines = [f"{title}: {amount} at {count(sites, 'site')}; one sample per {size(found.rate)}{since}{state}"]
    if found.exact_bytes is not None and found.exact_bytes > 0:
        lines.append(_check(found, found.exact_bytes))
    if found.pinned_age is not None:
        lines.append(f"What its blocks keep resident was last looked at {duration(found.pinned_age)} before its end.")
    lost = [count(found.samples[key], noun) for key, noun in (("dropped", "sample"), ("sites_dropped", "site"))
            if found.samples[key]]
    if lost:
        lines.append(f"{' and '.join(lost)} found no room and are missing: raise profile_bytes or the rate.")
    return lines


def _check(found: Profile, exact: int) -> str:
    """The sum of the estimates beside what the library counts."""
    if not found.is_whole:
        return f"The library counts {size(exact)}; blocks allocated before sampling began are not in the profile."
    if found.error >= found.estimate:
        return f"The library counts {size(exact)}: too little for one sample per {size(found.rate)}; a smaller --rate takes more."
    percent = 100 * (found.estimate - exact) / exact
    away = f"{abs(percent):.1f} % {'above' if percent > 0 else 'below'}" if abs(percent) >= 0.05 else "the same"
    return f"The library counts {size(exact)}; the estimate is {away}."


def _called(named: Named) -> dict[int, str]:
    """What threads are called: those of one name together, with how many they are."""
    known = {tid: named.threads.get(tid, "") for site in named.sites for tid, _ in site.threads}
    several = Counter(name for name in known.values() if name)
    return {tid: str(tid) if not name else f"{name} {tid}" if several[name] == 1 else f"{name} ×{several[name]}"
            for tid, name in known.items()}


def _thread_rows(named: Named) -> list[Row]:
    """What others have has no name."""
    called = _called(named)
    found: dict[tuple[str, int], Row] = {}
    for at, site in enumerate(named.sites):
        left = site.inuse.bytes - sum(amount for _, amount in site.threads)  # the library lists the largest of each site
        rest = [("", left)] * bool(site.threads and left > 0.01 * site.inuse.bytes)
        for thread, amount in [*((called[tid], amount) for tid, amount in site.threads if amount > 0), *rest]:
            found.setdefault((thread, at), Row(site, 0.0, thread=thread)).value += amount
    return list(found.values())


def _by_thread(rows: list[Row]) -> list[Row]:
    """The busiest thread first, and what each has together; last what others have."""
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row.thread] += row.value
    return sorted(rows, key=lambda row: (not row.thread, -totals[row.thread], row.thread, -row.value))


def _rows(named: Named, mode: str, before: Optional[Profile]) -> list[Row]:
    if mode == "threads":
        return _thread_rows(named)
    found = named.profile
    grown = difference(before, found) if before is not None else []
    named.learn([one.site for one in grown])
    rows = [Row(one.site, 0.0, one) for one in grown if named.shows(one.site)] if before is not None else \
        [Row(site, 0.0) for site in named.sites]
    if mode == "leaks":
        rows = [row for row in rows if not named.is_suppressed(row.site)]
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


def nothing(named: Named, mode: str) -> str:
    """Why there is no row, and what would have one."""
    found = named.profile
    if found.sites and not named.sites:
        return "No site matches --focus and --ignore."
    if mode == "pinned" and not found.knows_pinned:
        return ("What its blocks keep resident is not known of a program that was killed: nobody looked at it while it lived. profile -- "
                "PROGRAM does, from half a second on; under kernel.yama.ptrace_scope 1 as root, or with HAKMEM_OPTIONS=observable:1.")
    if found.sites:
        return NONE_HAS.get(mode, "No site has any.")
    if found.is_on:
        return "Nothing was sampled so far: wait longer (--seconds), or sample more (--rate 64k)."
    return "Nothing was sampled: sampling is off. Name a running process, or start the program by profile -- PROGRAM."


def _columns(mode: str, by: str) -> list[Column]:
    """Of sums there are no percentiles of lifetimes."""
    kind = MODES[mode]
    if by == "stack":
        return list(kind.columns)
    columns = [column for column in kind.columns if column[0] not in ("p50", "p99")]
    return [*columns[:2], INCLUSIVE, *columns[2:]] if kind.has_calls else columns


def _most(rows: list[Row], mode: str, most: int) -> list[Row]:
    """Of a difference what has grown, and what has shrunk."""
    if not most or len(rows) <= most:
        return rows
    low = sum(row.value < 0 for row in rows[-most // 4:]) if mode == "diff" else 0
    return rows[:most - low] + rows[len(rows) - low:]


def _selected(named: Named, mode: str) -> list[str]:
    """What of the profile is looked at, if not all."""
    said = []
    if len(named.sites) < len(named.profile.sites):
        said.append(f"Of these {size(math.fsum(site.inuse.bytes for site in named.sites))} at {count(len(named.sites), 'site')} are "
                    "looked at (--focus, --ignore).")
    if named.folds:
        said.append(f"Stacks without a function of Python ({number(named.folds)}) show one of CPython's, which tells what was made; "
                    f"{page('profiling')} says how to see Python's.")
    aside = [site for site in named.sites if mode == "leaks" and named.is_suppressed(site)]
    if aside:
        said.append(f"{size(math.fsum(site.inuse.bytes for site in aside))} at {count(len(aside), 'site')} are suppressed.")
    return said


def make(named: Named, title: str, mode: str = "inuse", before: Optional[Profile] = None, most: int = MOST,
         since: Optional[Profile] = None, by: str = "function") -> Report:
    """`before`: an older profile, which growth refers to; `most`: rows, 0 for all; `since`: an older profile of the same
    process, which rates refer to."""
    found, kind = named.profile, MODES[mode]
    by = "stack" if mode == "lifetimes" else by
    rows, columns = _rows(named, mode, before), _columns(mode, by)
    if not found.knows_pinned:
        columns = [column for column in columns if column is not PINNED]
    if kind.has_rate:
        is_same = before is not None and before.pid == found.pid and found.is_whole  # of another run times mean nothing
        columns.insert(3, rate_column(_add_rates(rows, found, since or (before if is_same else None))))
    if by != "stack":
        rows = [row for row in grouped(rows, named, by, kind.order if kind.has_calls else None)
                if row.inclusive or abs(row.value) >= 1]
    rows = _by_thread(rows) if mode == "threads" else rows
    shown = _most(rows, mode, most)
    for row in shown:
        row.cells = [cell(row) if row.site is not EMPTY or cell is INCLUSIVE[1] else NONE for _, cell in columns]
        if not row.where:
            row.where, row.callers = named.where(row.site), named.chain(row.site, CALLERS)
    lines = [*head(found, title), *_selected(named, mode)]
    if before is not None:
        lines.append(f"Growth is that of {duration(max(0.0, found.time - before.time))}.")
        lines += _without_site(before, found, rows) if mode == "diff" else []
    if mode == "peak" and found.peak_bytes:
        lines.append(f"The peak was {size(found.peak_bytes)}, {duration(max(0.0, found.time - found.peak_time))} before.")
    if not rows:
        return Report(lines, "", [], [], nothing(named, mode))
    return Report(lines, f"{BY[by]} {kind.title}", [name for name, _ in columns], shown, _left(rows, shown, BY[by].lower()[:-1]))


def _left(rows: list[Row], shown: list[Row], noun: str) -> str:
    """What is not shown; functions that only call hold nothing more."""
    left = [sum(bool(row.value) for row in part) for part in (rows, shown)]
    value = sum(row.value for row in rows) - sum(row.value for row in shown)
    return f"{count(left[0] - left[1], f'more {noun}')}, {size(value)} together" if left[0] > left[1] else ""


NONE_HAS = {"pinned": "No block that was sampled keeps free memory resident.", "diff": "No site has grown or shrunk.",
            "leaks": "No site has grown, or holds what stays.", "alloc": "Nothing was allocated while it sampled."}


def foot(report: Report) -> str:
    """What columns mean."""
    said = [f"{name}: {LEGEND[name]}" for name in report.columns if name in LEGEND]
    said = [FEW] * any(cell.endswith(("sample", "samples")) for row in report.rows for cell in row.cells) + said
    said = [FOOT, *said] if any(name.startswith("±") for name in report.columns) else said
    return "; ".join([*said, f"{page('words')} has the rest"])


def lines(report: Report, width: int = 80) -> list[str]:
    """Plain text; a place stands in a line of its own below its figures."""
    found = [piece for line in report.head for piece in textwrap.wrap(line, max(width, 60), break_on_hyphens=False)]
    if not report.rows:
        return found + ["", report.left]
    widths = [max(len(name), *(len(row.cells[at]) for row in report.rows)) for at, name in enumerate(report.columns)]
    found += ["", report.title, "  ".join(name.rjust(wide) for name, wide in zip(report.columns, widths))]
    for row in report.rows:
        found.append("  ".join(cell.rjust(wide) for cell, wide in zip(row.cells, widths)))
        found.append(clip(f"    {row.place(max(width, 60) - 4)}", max(width, 60)))
    found += [report.left] if report.left else []
    return found + textwrap.wrap(foot(report), max(width, 60), break_on_hyphens=False)


__all__ = ["LIKELY", "MODES", "MOST", "Report", "Row", "foot", "head", "life", "lines", "make", "nothing", "oldest", "error_cell", "error_words", "with_error"]
