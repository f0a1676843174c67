# SPDX-License-Identifier: MIT
"""Copies of what is measured, by content: a build that goes on meanwhile cannot change it."""
from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from . import place
from .errors import LabError
from .peers.outside import sha256


def _store() -> Path:
    return place.LAB / "store"


def folder_digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            total.update(f"{path.name} {sha256(path)}\n".encode())
    return total.hexdigest()


def _place(target: Path, make) -> Path:
    """Makes target with make(temporary), so that it is there whole or not at all."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            make(work / target.name)
            os.rename(work / target.name, target)
        except FileExistsError:
            pass  # another lab made it meanwhile
        except OSError as error:
            if not target.exists():
                raise LabError(f"cannot write {target}: {error.strerror}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def keep_folder(folder: Path, name: str) -> Path:
    """A copy of the programs in a folder, under a name that holds their hash."""
    return _place(_store() / f"{name}-{folder_digest(folder)[:16]}", lambda path: shutil.copytree(folder, path))


def keep_file(path: Path) -> Path:
    """A copy of a library, under its own name in a folder that holds its hash and its name."""
    folder = _store() / f"{sha256(path)[:16]}-{path.name}"
    return _place(folder, lambda work: (work.mkdir(), shutil.copy2(path, work / path.name))) / path.name


class Alone:
    """While it is entered, no other lab of this project measures: they would disturb each other."""

    def __enter__(self) -> "Alone":
        place.LAB.mkdir(parents=True, exist_ok=True)
        self.file = open(place.LAB / ".measuring", "w", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise LabError("another lab is measuring; both would be disturbed") from None
        return self

    def __exit__(self, *_) -> None:
        self.file.close()
