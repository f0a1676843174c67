# SPDX-License-Identifier: MIT
"""What Alpine's abuild makes packages of: packaging/alpine/APKBUILD with its checksum, and the sources beside it. There:
`cd build/package/alpine && abuild -r`."""
from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from . import stage

NEEDED = ("src/", "include/", "observe/", "cmake/", "tools/", "packaging/", "docs/", "test/double/", "test/CMakeLists.txt",
          "CMakeLists.txt", "README.md", "LICENSE")


def build() -> list[Path]:
    top = f"hakmem-{stage.version()}"  # where abuild looks for the sources
    folder, sources = stage.OUT / "alpine", stage.OUT / "stage" / "alpine"
    for path in (folder, sources):
        shutil.rmtree(path, ignore_errors=True)
    stage.copy_sources(sources, *NEEDED)
    archive = folder / f"{top}.tar.gz"
    stage.archive(archive, top, sources)
    text = (stage.PACKAGING / "alpine" / "APKBUILD").read_text(encoding="utf-8")
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    (folder / "APKBUILD").write_text(f'{text}\nsha512sums="\n{digest}  {archive.name}\n"\n', encoding="utf-8")
    return [folder / "APKBUILD", archive]
