# SPDX-License-Identifier: MIT
"""Files that are there whole or not at all: written beside their place, and renamed."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, data: bytes | str) -> None:
    """Raises OSError, and then leaves what was there. What is no ordinary file (a pipe, a device) is written into."""
    data = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    try:
        _replace(path.resolve(), data)  # a link stays one
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.rename(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    """Linux tells it without a moment in which it is another."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o077
