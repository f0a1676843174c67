# SPDX-License-Identifier: MIT
"""The Debian packages: packaging/debian over the sources, built by dpkg-buildpackage, looked at by lintian."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import stage


ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls machines


def build(machine: str = stage.MACHINE) -> list[Path]:
    stage.need("dpkg-buildpackage", "dh", "cmake", "ninja", *stage.cross_tools(machine))
    top = stage.OUT / "stage" / f"deb-{machine}"
    folder = top / f"hakmem-{stage.version()}"
    shutil.rmtree(top, ignore_errors=True)
    stage.copy_sources(folder)
    shutil.copytree(stage.PACKAGING / "debian", folder / "debian")
    environment = dict(os.environ, SOURCE_DATE_EPOCH=str(stage.moment()), DEB_BUILD_OPTIONS="nocheck parallel=2")
    for name in ("HAKMEM_OPTIONS", "HAKMEM_PROFILE", "LD_PRELOAD", "CFLAGS", "CXXFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    # Debian's own Python: that of a build environment need not be what packages are for.
    environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    cross = [] if machine == stage.MACHINE else [f"--host-arch={ARCHITECTURES[machine]}", "--build-profiles=cross,nocheck"]
    stage.run("dpkg-buildpackage", "--build=binary", "--no-sign", *cross, cwd=folder, env=environment)
    made = []
    for path in sorted([*top.glob("*.deb"), *top.glob("*.changes"), *top.glob("*.buildinfo")]):
        shutil.copy2(path, stage.OUT / path.name)
        if path.suffix == ".deb":
            made.append(stage.OUT / path.name)
    return made
