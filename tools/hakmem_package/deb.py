# SPDX-License-Identifier: MIT
"""The Debian packages: packaging/debian over the sources, built by dpkg-buildpackage, looked at by lintian."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import stage


def build() -> list[Path]:
    stage.need("dpkg-buildpackage", "dh", "cmake", "ninja")
    top = stage.OUT / "stage" / "deb"
    folder = top / f"hakmem-{stage.version()}"
    shutil.rmtree(top, ignore_errors=True)
    stage.copy_sources(folder)
    shutil.copytree(stage.PACKAGING / "debian", folder / "debian")
    environment = dict(os.environ, SOURCE_DATE_EPOCH=str(stage.moment()), DEB_BUILD_OPTIONS="nocheck parallel=2")
    for name in ("HAKMEM_OPTIONS", "HAKMEM_PROFILE", "LD_PRELOAD", "CFLAGS", "CXXFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    # Debian's own Python: that of a build environment need not be what packages are for.
    environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    stage.run("dpkg-buildpackage", "--build=binary", "--no-sign", cwd=folder, env=environment)
    made = []
    for path in sorted([*top.glob("*.deb"), *top.glob("*.changes"), *top.glob("*.buildinfo")]):
        shutil.copy2(path, stage.OUT / path.name)
        if path.suffix == ".deb":
            made.append(stage.OUT / path.name)
    return made


def lint() -> list[str]:
    """What lintian says; it fails on errors and warnings."""
    changes = sorted(stage.OUT.glob("hakmem_*.changes"))
    if not changes:
        raise stage.PackageError("no .changes file: ./hakmem package deb")
    done = subprocess.run(["lintian", "--no-tag-display-limit", changes[-1]], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")]
