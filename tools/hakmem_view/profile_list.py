# SPDX-License-Identifier: MIT
"""The source of functions, with bytes beside its lines: `hakmem profile --list REGEX`. By the standard library alone."""
from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from .profile_model import KINDS
from .profile_names import Named, short
from .wording import NONE, clip, size

AROUND = 2  # lines of source above the first that has bytes, and below the last
MOST_LINES = 200  # of a function

Place = tuple[str, str]  # function, file


def _sums(named: Named, pattern: re.Pattern, kind: str) -> tuple[dict[Place, Counter], dict[Place, Counter]]:
    """Bytes by line, of the line itself and with all that it calls; a line that is twice in a stack counts once."""
    own: dict[Place, Counter] = defaultdict(Counter)
    whole: dict[Place, Counter] = defaultdict(Counter)
    for site in named.sites:
        amount, seen = KINDS[kind].of(site), set()
        for at, frame in enumerate(named.own(site)):
            place = (short(frame.function), frame.file)
            if amount > 0 and pattern.search(place[0]):
                own[place][frame.line] += amount if at == 0 else 0
                whole[place][frame.line] += amount if (place, frame.line) not in seen else 0
                seen.add((place, frame.line))
    return own, whole


def _source(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    except OSError:
        return []


def _row(self_bytes: float, whole_bytes: float, line: int, text: str, width: int) -> str:
    cells = [size(value) if value >= 1 else NONE for value in (self_bytes, whole_bytes)]
    return clip(f"{cells[0]:>9}  {cells[1]:>10}  {line or '?':>6}  {text.expandtabs(4)}".rstrip(), width)


def lines(named: Named, pattern: re.Pattern, kind: str = "inuse", width: int = 80) -> list[str]:
    """The functions with most first."""
    own, whole = _sums(named, pattern, kind)
    if not whole:
        return ["No function that matches --list holds anything."]
    found = []
    for place in sorted(whole, key=lambda one: (-sum(own[one].values()), -max(whole[one].values()))):
        function, file = place
        found += ["", clip(f"{function}{f' in {file}' if file else ''}", width), f"{'Self':>9}  {'With calls':>10}    Line"]
        known, source = sorted(whole[place]), _source(file)
        numbers = range(max(1, known[0] - AROUND), min(len(source), known[-1] + AROUND) + 1) if known[0] else []
        shown = list(numbers)[:MOST_LINES] if len(source) >= known[-1] else known
        found += [_row(own[place][line], whole[place][line], line, source[line - 1] if 0 < line <= len(source) else "", width)
                  for line in shown]
        if not source:
            found.append("its source is not here" if file else "it has no debug data: its lines are not known")
    return found[1:]
