# SPDX-License-Identifier: MIT
"""The crates hakmem-sys and hakmem-alloc: packaging/rust with the C sources packed in, packaged by cargo, which builds each of them."""
from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from . import stage

NAMES = ("hakmem-sys", "hakmem-alloc")


def sources_only() -> Path:
    """A workspace with the crates as they are published."""
    folder = stage.OUT / "stage" / "rust"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stage.PACKAGING / "rust", folder)
    for path in folder.rglob("Cargo.toml"):
        path.write_text(path.read_text(encoding="utf-8").replace("@VERSION@", stage.version()), encoding="utf-8")
    for name in NAMES:
        shutil.copy2(stage.ROOT / "LICENSE", folder / name / "LICENSE")
    stage.copy_sources(folder / "hakmem-sys" / "csrc", "src/", "include/", "observe/", "LICENSE")
    return folder


def build() -> list[Path]:
    stage.need("cargo")
    folder = sources_only()
    # Cargo keeps what it unpacked of a name and version by the path of this folder: other sources, another folder.
    whole = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        whole.update(path.read_bytes())
    target = stage.OUT / "cargo" / whole.hexdigest()[:12]
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target))
    offline = ["--offline"] if os.environ.get("CARGO_NET_OFFLINE") == "true" else []
    stage.run("cargo", "package", "--workspace", "--allow-dirty", "--quiet", *offline, cwd=folder, env=environment)
    made = []
    for name in NAMES:
        path = target / "package" / f"{name}-{stage.version()}.crate"
        shutil.copy2(path, stage.OUT / path.name)
        made.append(stage.OUT / path.name)
    return made
