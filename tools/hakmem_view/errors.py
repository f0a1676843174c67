# SPDX-License-Identifier: MIT
"""What the user is told instead of a traceback: always one line and status 2."""
from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Callable, NoReturn

from hakmem_lab.errors import LabError, raise_interrupts


class ViewError(LabError):
    """No such process, nobody who answers, an answer that cannot be read."""

    status = 2


class Closed(ViewError):
    """The process has ended."""


class Absent(ViewError):
    """The process does not run on hakmem."""


class Refused(ViewError):
    """The process may not be read, or is of another version."""


class Slow(ViewError):
    """No answer in time: perhaps because the process sleeps."""


def need_writable(path: Path) -> None:
    """Before what takes long, so that its result is not lost. "-": standard output."""
    if str(path) == "-":
        return
    folder = path.parent
    if not folder.is_dir():
        raise ViewError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir():
        raise ViewError(f"cannot write {path}: it is a folder")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ViewError(f"cannot write {path}: {os.strerror(errno.EACCES)}")


def end(run: Callable[[], int]) -> NoReturn:
    """Ends the process with the status that a command of the standard library alone returns, or that of its error."""
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        raise_interrupts()
        status = run()
        sys.stdout.flush()
    except ViewError as error:
        print(f"hakmem: {error}", file=sys.stderr)
        status = ViewError.status
    except KeyboardInterrupt:
        print("hakmem: interrupted", file=sys.stderr)
        status = 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        status = 141 if isinstance(error, BrokenPipeError) else ViewError.status
        if status != 141:
            where = f"{error.filename}: " if error.filename else ""
            print(f"hakmem: {where}{error.strerror or error}", file=sys.stderr)
    sys.exit(status)
