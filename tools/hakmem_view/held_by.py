# SPDX-License-Identifier: MIT
"""The join of `explain` and a running heap profile: which functions hold the bytes of a cause."""
from __future__ import annotations

from typing import Callable

from . import observer, profile_command, profile_report
from .errors import ViewError
from .profile_group import Row, grouped
from .profile_model import Site
from .profile_names import Named
from .wording import size

MOST = 3  # functions a cause
SINCE = "others, from before it sampled"
NO_BREAK = "\u00a0"
CAUSES: dict[str, tuple[Callable[[Site], float], bool]] = {  # by name of the cause: bytes, whether they have an error
    "live": (lambda site: site.inuse.bytes, True), "slack": (lambda site: site.slack, False),
    "slab_free": (lambda site: site.pinned, False)}


def functions(named: Named) -> dict[str, list[str]]:
    """By cause, the functions with most of it in words."""
    found = {}
    for cause, (amount, has_error) in CAUSES.items():
        found_rows = grouped([Row(site, amount(site)) for site in named.sites if amount(site) > 0], named, "function")
        rows = [f"{row.where}: " + (profile_report.with_error(row.site.inuse, row.site.error) if has_error else size(row.value)).replace(
            " ", NO_BREAK) for row in found_rows[:MOST]]
        if rows:
            found[cause] = rows + [SINCE] * (not named.profile.is_whole)
    return found


def of(where: observer.Observed) -> dict[str, list[str]]:
    """Of a process or a core file that samples, or did; nothing of others."""
    try:
        found = profile_command.read(where).found
    except ViewError:
        return {}
    return functions(Named(found, where.pid)) if found.sites else {}
