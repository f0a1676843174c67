# SPDX-License-Identifier: MIT
"""Where the command and its data are, in the source tree or where they were installed, and which version it is.

An installed tree has the file hakmem_installed.py beside this package, written by cmake/install.cmake."""
from __future__ import annotations

import re
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent  # holds this package
try:
    import hakmem_installed as tree  # type: ignore[import-not-found]
except ModuleNotFoundError:
    tree = None
ROOT = DATA.parent  # of a source tree
COMMAND = DATA / tree.COMMAND if tree else ROOT / "hakmem"
OBSERVER = DATA / tree.OBSERVER if tree else ROOT / "build" / "release" / "observe" / "hakmem-observe"
LIBRARY = DATA / tree.LIBRARY if tree else ROOT / "build" / "release" / "libhakmem.so"
HARDENED = LIBRARY.parent / "hakmem" / "hardened" / LIBRARY.name if tree else ROOT / "build" / "hardened" / "libhakmem.so"
PYTHON = LIBRARY.parent / "hakmem" / "python"  # tools/hakmem_python
NAME = "hakmem" if tree else "./hakmem"  # as the user calls it


def page(name: str) -> str:
    """How the user reads a page of docs/."""
    return f"`{NAME} docs {name}`"


def own_version() -> str:
    if tree:
        return tree.VERSION
    try:
        header = (ROOT / "include" / "hakmem" / "hakmem.h").read_text(encoding="utf-8")
        parts = dict(re.findall(r"^#define HAK_VERSION_(\w+) (\d+)", header, re.M))
        return ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH"))
    except (OSError, KeyError):
        return "of an unknown version"
