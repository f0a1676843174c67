# SPDX-License-Identifier: MIT
"""Numbers in words: sizes, counts, shares, times. By the standard library alone."""
from __future__ import annotations

NONE = "–"
COUNTS = ((1e15, 1e15, "P"), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))  # from, unit
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(value: int, noun: str) -> str:
    """One superslab, two superslabs."""
    return f"{number(value)} {noun}{'' if value == 1 else 's' if noun[-1] != 's' else 'es'}"


def size(value: float | None) -> str:
    """Bytes with three significant digits."""
    if value is None:
        return NONE
    sign, value, unit = "-" if value < 0 else "", abs(value), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{sign}{_digits(value) if unit else f'{value:.0f}'} {UNITS[unit]}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def number(value: float | None) -> str:
    """A count, short."""
    if value is None:
        return NONE
    for bound, factor, sign in COUNTS:
        if abs(value) >= bound:
            return f"{_digits(value / factor)} {sign}"
    return f"{value:.0f}" if value == int(value) or value >= 99.95 else _digits(value)


def share(part: float, whole: float) -> str:
    """In percent."""
    if whole <= 0:
        return NONE
    found = 100 * part / whole
    if 0 < found < 0.05:
        return "<0.1 %"
    return f"{found:.0f} %" if found >= 9.95 or found == 0 else f"{found:.1f} %"


def event(name: str, value: float) -> str:
    """A counter of events, or of bytes."""
    return size(value) if name.endswith("bytes") else number(value)


def percent(part: float) -> str:
    """Of one, without decimals."""
    return f"{100 * part:.0f} %"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60:02d} s"
    if minutes < 2880:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"


def keep_time(milliseconds: int) -> str:
    """As the library writes it: in seconds."""
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def spoken(name: str) -> str:
    """A key of the statistics in words."""
    return name.replace("_", " ").replace("units", "64 KiB units")


KEEPS = (("keep_units", "unused memory"), ("keep_huge", "freed huge blocks"))  # limits: what the learner decides


def kept(limits: dict[str, int]) -> list[str]:
    """Keep times that the learner chose, and what they save; none where the standard decides."""
    def saves(value: int) -> str:
        return f", saves {size(value)}/s" if value > 0 else ""
    return [f"{name} kept {keep_time(limits[key + '_ms'])}{saves(limits.get(key + '_saves_bytes', 0))}"
            for key, name in KEEPS if limits.get(key + "_ms", 0) > 0]


def decisions(events: dict[str, int]) -> list[str]:
    """How often the learner changed a keep time, and took it back."""
    changes, failed = events.get("learner_change", 0), events.get("learner_resets", 0)
    found = [count(changes, "change") + " of keep times"] if changes else []
    return found + ([count(failed, "failed forecast")] if failed else [])


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[:max(0, most - 1)] + "…"
