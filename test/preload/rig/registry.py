# SPDX-License-Identifier: MIT
"""The list of programs: a function with the decorator `program` is an entry of the matrix."""

from collections.abc import Callable
from dataclasses import dataclass

PROGRAMS = {}


@dataclass(frozen=True)
class Program:
    name: str
    steps: Callable  # called with a rig.run.Run, once for each pass
    needs: tuple  # commands (or keys of packages.PACKAGES) that must exist
    labels: tuple  # "default" or "full"
    timeout: int  # seconds for both passes on a busy machine
    side_by_side: bool  # both passes at once: for programs that mostly sleep


def program(needs, name=None, full=False, timeout=120, side_by_side=False):
    """Register the decorated function; `needs` is a string of words."""

    def register(steps):
        entry_name = name or steps.__name__
        assert entry_name not in PROGRAMS, entry_name
        labels = ("full",) if full else ("default",)
        PROGRAMS[entry_name] = Program(
            entry_name, steps, tuple(needs.split()), labels, timeout, side_by_side
        )
        return steps

    return register


def select(names):
    """Programs by name or label, in registration order; no names: all. KeyError names the unknown."""
    wanted = set()
    for word in names or ("default", "full"):
        matching = {p.name for p in PROGRAMS.values() if word == p.name or word in p.labels}
        if not matching:
            raise KeyError(word)
        wanted |= matching
    return [p for p in PROGRAMS.values() if p.name in wanted]
