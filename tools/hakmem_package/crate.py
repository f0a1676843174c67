# SPDX-License-Identifier: MIT
"""The crates hakmem-sys and hakmem-alloc: packaging/rust with the C sources packed in, packaged by cargo, which builds each of them. And
what stands for tikv-jemalloc-sys, once for each series of its versions: cargo takes a replacement of the version that is asked for."""
from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from . import stage

NAMES = ("hakmem-sys", "hakmem-alloc")
JEMALLOC, SERIES = "tikv-jemalloc-sys", ("0.5", "0.6", "0.7")


def _fill(folder: Path, series: str = "") -> None:
    """A template becomes a crate."""
    for path in [*folder.rglob("Cargo.toml"), *folder.rglob("README.md")]:
        text = path.read_text(encoding="utf-8").replace("@VERSION@", stage.version()).replace("@SERIES@", series)
        path.write_text(text, encoding="utf-8")
    shutil.copy2(stage.ROOT / "LICENSE", folder / "LICENSE")


def _pack(folder: Path) -> None:
    """The C sources, and how they are built."""
    stage.copy_sources(folder / "csrc", "src/", "include/", "observe/", "LICENSE")
    shutil.copy2(stage.PACKAGING / "rust" / "common" / "sources.rs", folder / "sources.rs")


def sources_only() -> Path:
    """A workspace with the crates as they are published."""
    folder = stage.OUT / "stage" / "rust"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stage.PACKAGING / "rust", folder, ignore=shutil.ignore_patterns("common", JEMALLOC))
    for name in NAMES:
        _fill(folder / name)
    _pack(folder / "hakmem-sys")
    return folder


def in_place_of_jemalloc() -> list[Path]:
    """Not for a registry, which has one of that name: used by their paths."""
    made = []
    for series in SERIES:
        name = f"{JEMALLOC}-{series}.999"
        folder = stage.OUT / "stage" / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(stage.PACKAGING / "rust" / JEMALLOC, folder)
        _fill(folder, series)
        _pack(folder)
        made.append(stage.OUT / f"{name}.crate")
        stage.archive(made[-1], name, folder)
    return made


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
    return made + in_place_of_jemalloc()
