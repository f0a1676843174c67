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
    labels: tuple  # of ctest: "real", with "full" also for what a default run leaves out
    timeout: int  # seconds for both passes on a busy machine
    side_by_side: bool  # both passes at once: for programs that mostly sleep


def program(needs, name=None, full=False, long=False, timeout=300, side_by_side=False):
    """Register the decorated function; `needs` is a string of words."""

    def register(steps):
        entry_name = name or steps.__name__
        assert entry_name not in PROGRAMS, entry_name
        labels = ("real", *["full"] * full, *["long"] * long)
        PROGRAMS[entry_name] = Program(entry_name, steps, tuple(needs.split()), labels, timeout,
                                       side_by_side)
        return steps

    return register


def select(names):
    """Programs by name or group, in registration order; no names: all. KeyError: an unknown one."""
    groups = {"full": set(PROGRAMS),
              "default": {name for name, one in PROGRAMS.items() if "full" not in one.labels}}
    wanted = set()
    for word in names or ("full",):
        wanted |= groups[word] if word in groups else {PROGRAMS[word].name}
    return [entry for entry in PROGRAMS.values() if entry.name in wanted]
