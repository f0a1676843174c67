# SPDX-License-Identifier: MIT
"""What a step gave, the two ways to fail, and how a failure is worded."""

import contextlib
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
    return "\n".join(
        "    | " + line for line in data.decode(errors="replace").splitlines()[-lines:]
    )


def first_difference(expected, seen):
    """The first differing line with both readings."""
    old, new = expected.split(b"\n"), seen.split(b"\n")
    index = next(
        (i for i, pair in enumerate(zip(old, new)) if pair[0] != pair[1]), min(len(old), len(new))
    )

    def show(lines):
        return repr(lines[index][:300]) if index < len(lines) else "(end)"

    return f"    line {index + 1}\n    without: {show(old)}\n    with:    {show(new)}"
