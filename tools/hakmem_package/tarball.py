# SPDX-License-Identifier: MIT
"""The tarball: an installed tree with install.sh beside it."""
from __future__ import annotations

import shutil
from pathlib import Path

from . import stage, wheel


def build(machine: str = stage.MACHINE) -> Path:
    stage.need("cmake", "readelf")
    top = f"hakmem-{stage.version()}-linux-{machine}"
    folder = stage.OUT / "stage" / top
    shutil.rmtree(folder, ignore_errors=True)
    stage.tree(folder / "tree", machine)
    shutil.copy2(stage.PACKAGING / "install.sh", folder / "install.sh")
    shutil.copy2(stage.ROOT / "LICENSE", folder / "LICENSE")
    (folder / "MACHINE").write_text(machine + "\n", encoding="utf-8")
    needed = wheel.glibc_needed(*wheel.programs(folder / "tree"))
    (folder / "GLIBC").write_text("{}.{}\n".format(*needed), encoding="utf-8")
    path = stage.OUT / f"{top}.tar.gz"
    stage.archive(path, top, folder)
    return path
