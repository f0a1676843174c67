# SPDX-License-Identifier: MIT
"""The C library that programs run on: the system's, or the newest glibc out of Debian's unstable suite, whose loader
starts the program. Then every allocator can be measured on the glibc of tomorrow, beside its own malloc of then."""
from __future__ import annotations

import os
import subprocess
import shutil
import re
from dataclasses import dataclass
from pathlib import Path

from .. import errors
from . import debian, outside
from .outside import Folder, Skip


@dataclass(frozen=True)
class Base:
    """How a program is started on a C library, with an allocator's library preloaded or without ("").

    Only real programs can be started through a loader, not scripts; and their children run on the system's base."""

    name: str
    label: str  # "glibc 2.43"
    version: str = ""
    loader: str = ""  # "" for the system's
    library_path: str = ""
    package: str = ""
    sha256: str = ""  # of libc.so.6
    skip: str = ""  # why it cannot be had; "" if it can

    def prefix(self, lib=""):
        """What stands before the program's path."""
        if not self.loader:
            return []
        return [self.loader, "--library-path", self.library_path, *(["--preload", lib] if lib else [])]

    def env(self, lib=""):
        """What the program's environment needs in addition."""
        return {} if self.loader or not lib else {"LD_PRELOAD": lib}


def system():
    """Python runs on it, so it can tell."""
    try:
        label = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        label = ""
    return Base("system", label or "the system's C library", version=label.partition(" ")[2])


def system_folders():
    """Where the system's own libraries lie, for what the new base does not bring. Folders for another machine do no
    harm: the loader passes over files of another kind."""
    folders = [str(path) for path in sorted(Path("/usr/lib").glob("*-linux-gnu")) if path.is_dir()]
    return [*folders, *(path for path in ("/usr/lib64", "/usr/lib", "/usr/local/lib") if os.path.isdir(path))]


def _glibc_version(versions):
    """"2.43" out of "libc6 2.43-7, …"."""
    for word in versions.split(", "):
        name, _, version = word.partition(" ")
        if name == "libc6":
            return version.partition("-")[0]
    return ""


def _newest(build, rebuild, progress):
    stamp = debian.unstable("glibc-newest", debian.GLIBC, r"libc\.so\.6", build, rebuild, progress)
    folder = Folder("glibc-newest").path
    library = folder / stamp["library"]
    loaders = [path for path in library.parent.glob("ld-linux-*.so.*") if path.is_file()]
    loaders += sorted((folder / "root").rglob("ld-linux-*.so.*"))
    if not loaders:
        raise Skip("the package libc6 has no loader as expected")
    version = _glibc_version(stamp["version"])
    return Base("newest", f"glibc {version}", version=version, loader=os.path.realpath(loaders[0]),
                library_path=":".join([str(library.parent), *system_folders()]), package=stamp["version"],
                sha256=stamp["sha256"])


def _musl():
    """Its loader says its version when it is called without a program. Programs linked with it find it themselves."""
    loaders = sorted(path for folder in ("/lib", "/usr/lib") for path in Path(folder).glob("ld-musl-*.so.1"))
    if not loaders or shutil.which("musl-gcc") is None:
        raise Skip("needs musl-gcc and its C library; Debian's package is musl-tools")
    said = subprocess.run([str(loaders[0])], capture_output=True, text=True, timeout=30, check=False).stderr
    found = re.search(r"^Version (\S+)", said, re.MULTILINE)
    version = found.group(1) if found else "unknown"
    return Base("musl", f"musl {version}", version=version, sha256=outside.sha256(os.path.realpath(loaders[0])))


BASES = ("system", "newest", "musl")


def find_base(name, *, build=True, progress=lambda text: None, rebuild=False):
    """A base by its name. Never raises for one that cannot be had: then `skip` says why."""
    if name == "system":
        return system()
    if name not in BASES:
        raise errors.unknown("base", name, BASES)
    label = {"newest": "the newest glibc"}.get(name, name)
    try:
        return _musl() if name == "musl" else _newest(build, rebuild, progress)
    except Skip as reason:
        return Base(name, label, skip=str(reason))
    except OSError as problem:
        return Base(name, label, skip=outside.last_error(str(problem)))
