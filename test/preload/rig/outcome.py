# SPDX-License-Identifier: MIT
"""What a step gave, the two ways to fail, and how a failure is worded."""

import contextlib
import itertools
import signal
from dataclasses import dataclass


class Difference(Exception):
    """The pass with the library does something else than the one without."""


class Broken(Exception):
    """The pass without the library fails already: nothing can be said about the library."""


@dataclass
class Step:
    label: str
    result: bytes
    seconds: float = 0.0


def name_status(status):
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


def tail(data, lines=15):
    text = data.decode(errors="replace").splitlines()[-lines:]
    return "\n".join(f"    | {line}" for line in text)


def first_difference(expected, seen):
    """The first differing line with both readings."""
    both = itertools.zip_longest(expected.split(b"\n"), seen.split(b"\n"))
    number, pair = next((n, pair) for n, pair in enumerate(both, 1) if pair[0] != pair[1])
    old, new = ("(end)" if line is None else repr(line[:300]) for line in pair)
    return f"    line {number}\n    without: {old}\n    with:    {new}"
