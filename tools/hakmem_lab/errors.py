# SPDX-License-Identifier: MIT
"""What the lab tells its user instead of a traceback."""
import signal


class LabError(Exception):
    """Something outside went wrong: a missing tool, a full disk, a run that cannot be compared. Exit status 1."""

    status = 1


class UsageError(LabError):
    """A word on the command line that means nothing here. Exit status 2."""

    status = 2


def raise_interrupts():
    """From now on they are KeyboardInterrupt. While modules are loaded they end the process (tools/lab.py)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def unknown(what, word, valid):
    """The error for an unknown name, which lists the valid ones."""
    return UsageError(f"unknown {what} '{word}'; there are: {' '.join(sorted(valid))}")
