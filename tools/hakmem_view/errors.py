# SPDX-License-Identifier: MIT
"""What the user is told instead of a traceback: always one line and status 2."""
from hakmem_lab.errors import LabError


class ViewError(LabError):
    """No such process, nobody who answers, an answer that cannot be read."""

    status = 2


class Closed(ViewError):
    """Nobody listens there, or not any more: perhaps because the process has ended."""


class Slow(ViewError):
    """No answer in time: perhaps because the process is stopped."""
