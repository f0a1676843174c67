# SPDX-License-Identifier: MIT
"""The join of `explain` and a running heap profile: which sites hold the bytes of a cause."""
from __future__ import annotations

from typing import Callable, Optional

from . import profile_command, profile_report, source
from .errors import ViewError
from .profile_model import Profile, Site
from .profile_names import Named
from .wording import size

MOST = 3  # sites a cause
NO_BREAK = "\u00a0"
CAUSES: dict[str, tuple[Callable[[Site], float], bool]] = {  # by name of the cause: bytes, whether they have an error
    "live": (lambda site: site.inuse.bytes, True), "slack": (lambda site: site.slack, False),
    "slab_free": (lambda site: site.pinned, False)}


def sites(named: Named) -> dict[str, list[str]]:
    """By cause, the largest sites in words."""
    found = {}
    for cause, (amount, has_error) in CAUSES.items():
        ordered = sorted((site for site in named.profile.sites if amount(site) > 0), key=lambda site: -amount(site))[:MOST]
        rows = [f"{named.where(site)}: " + (size(amount(site)) + (
            f" ± {profile_report.percent_error(site.inuse, site.error)}" if has_error else "")).replace(" ", NO_BREAK)
                for site in ordered]
        if rows:
            found[cause] = rows
    return found


def profile_of(where: source.Source) -> Optional[Profile]:
    """Of a process that samples, or did; None if it does not, or knows nothing of it."""
    try:
        found = profile_command.shot(where.read(profile_command.DOCUMENT), "its profile").found
    except ViewError:
        return None
    return found if found.sites else None


def of(pid: int) -> dict[str, list[str]]:
    """Of a process that serves its profile; nothing of others, and of a core file (0)."""
    try:
        where = source.find(str(pid)) if pid else None
    except ViewError:
        return {}
    found = profile_of(where) if where else None
    return sites(Named(found, where.pid)) if found is not None else {}
