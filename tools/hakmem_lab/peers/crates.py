# SPDX-License-Identifier: MIT
"""Sources of the newest releases, as Rust's crates carry them. Cargo itself resolves and fetches, with its own
configuration, so mirrors and proxies work as the user set them up; one project per peer, so that a crate that cannot
be had takes no other with it."""
from __future__ import annotations

import json
import os
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from . import outside
from .outside import Skip

_MANIFEST = """[package]
name = "sources-for-the-lab"
version = "0.0.0"
edition = "2021"

[lib]
path = "empty.rs"

[dependencies]
{crate} = "*"

[workspace]
"""


@dataclass(frozen=True)
class Crate:
    name: str
    version: str
    checksum: str
    commit: str  # of the repository the crate was packed from; "" if it does not say
    folder: Path

    def __str__(self):
        return f"{self.name} {self.version.partition('+')[0]}"


def locked(lockfile, name):
    """Version and checksum of a crate in Cargo.lock."""
    for block in lockfile.split("[[package]]"):
        values = dict(re.findall(r'^(\w+) = "([^"]*)"$', block, re.MULTILINE))
        if values.get("name") == name and "checksum" in values:
            return values["version"], values["checksum"]
    raise Skip(f"cargo resolved no {name}")


def _archive(name, version, checksum):
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    for path in sorted(home.glob(f"registry/cache/*/{name}-{version}.crate")):
        if outside.sha256(path) == checksum:
            return path
    return None


def _commit(folder):
    try:
        return json.loads((folder / ".cargo_vcs_info.json").read_text())["git"]["sha1"]
    except (OSError, ValueError, KeyError):
        return ""


def check_cargo(said):
    """Cargo before 1.70 would fetch the whole index of the registry first."""
    found = re.match(r"cargo (\d+)\.(\d+)", said)
    if found is None or tuple(map(int, found.groups())) < (1, 70):
        raise Skip(f"needs cargo 1.70 or newer, '{said.strip() or 'cargo'}' is here; Debian 12 has it as cargo-web")


def fetch(name, folder):
    """The newest release of a crate, unpacked into the work folder."""
    check_cargo(outside.output(["cargo", "--version"]))
    project = folder.work / "cargo"
    project.mkdir()
    (project / "Cargo.toml").write_text(_MANIFEST.format(crate=name))
    (project / "empty.rs").touch()
    outside.run(["cargo", "generate-lockfile"], folder.log, cwd=project, seconds=600)
    version, checksum = locked((project / "Cargo.lock").read_text(), name)
    failure = Skip("cargo left no archive of " + name)
    try:
        outside.run(["cargo", "fetch", "--locked"], folder.log, cwd=project, seconds=600)
    except Skip as problem:  # an older cargo may fetch a crate and then not understand it: we only want its files
        failure = problem
    archive = _archive(name, version, checksum)
    if archive is None:
        raise failure
    # Python before 3.11.4 has no filter; the archive is the one whose checksum the registry gave.
    safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as tar:
        tar.extractall(folder.work, **safe)
    sources = folder.work / f"{name}-{version}"
    return Crate(name, version, checksum, _commit(sources), sources)
