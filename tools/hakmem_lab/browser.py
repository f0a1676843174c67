# SPDX-License-Identifier: MIT
"""A headless Chromium, to draw pictures and to read a page as a person's browser would have it.

It is started once per page, without a profile of the user's, and has no reason to go to the network: pages are files.
"""
from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Optional

from .errors import LabError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = "pictures need a Chromium: install one (Debian, Ubuntu: apt-get install chromium)"
FLAGS = ("--headless=new", "--no-sandbox",  # refused to root otherwise; the page is ours and loads nothing
         "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--no-default-browser-check", "--password-store=basic", "--force-color-profile=srgb", "--mute-audio")


def find() -> Optional[str]:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def _run(page: Path, arguments: list[str], timeout: float) -> str:
    program = find()
    if program is None:
        raise LabError(MISSING)
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-", ignore_cleanup_errors=True) as profile:
        command = [program, *FLAGS, f"--user-data-dir={profile}", *arguments, page.resolve().as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{program} has not drawn {page.name} within {timeout:.0f} s") from error
        except OSError as error:
            raise LabError(f"{program} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise LabError(f"{program} ended with status {done.returncode}: {lines[-1] if lines else 'no message'}")
    return done.stdout.decode(errors="replace")


def dump(page: Path, timeout: float = 120, budget_ms: int = 60_000, width: int = 1400) -> str:
    """The page's document after its scripts have run. The budget is the page's own time, not ours: it is used up
    as fast as the page computes."""
    return _run(page, [f"--virtual-time-budget={budget_ms}", f"--window-size={width},1000", "--dump-dom"], timeout)


def shoot(page: Path, path: Path, width: int, height: int, timeout: float = 120) -> None:
    """The page as a PNG, twice as fine."""
    _run(page, [f"--screenshot={path.resolve()}", f"--window-size={width},{height}",
                "--force-device-scale-factor=2"], timeout)
