# SPDX-License-Identifier: MIT
"""`./hakmem release --check`: whether what is here can be released. Each check prints a line; a finding begins with FAIL."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import uuid
from pathlib import Path

from . import crate, stage

ABI = stage.ROOT / "test" / "golden" / "symbols.txt"  # exported symbols; test/golden/ says how it is brought up to date
CONFIGURE = ("-G", "Ninja", "-DHAK_FLAVOUR=release", "-DHAK_TESTS=OFF")


def versions() -> list[str]:
    """What states another version than the header."""
    wanted, found = stage.version(), []
    first = (stage.PACKAGING / "debian" / "changelog").read_text(encoding="utf-8").split("\n", 1)[0]
    if not first.startswith(f"hakmem ({wanted})"):
        found.append(f"packaging/debian/changelog begins with '{first}'")
    text = (stage.PACKAGING / "alpine" / "APKBUILD").read_text(encoding="utf-8")
    if f"\npkgver={wanted}\n" not in text:
        found.append("packaging/alpine/APKBUILD has another pkgver")
    if not re.search(rf"^## \[?{re.escape(wanted)}\b", (stage.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M):
        found.append(f"CHANGELOG.md has no section {wanted}")
    for path in sorted(stage.PACKAGING.rglob("Cargo.toml")):
        text = path.read_text(encoding="utf-8")
        if "[package]" in text and not re.search(r'^version = "[^"]*@VERSION@"', text, re.M):
            found.append(f"{path.relative_to(stage.ROOT)} states a version of its own")
    return found


def exported(library: Path) -> list[str]:
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted(line.split()[2] for line in names.splitlines() if line.split()[1] != "A")


def abi(library: Path) -> list[str]:
    """A soname that is not of this version; symbols that went, which programs miss, and those that came."""
    dynamic = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
    found, now = [], set(exported(library))
    if f"[{stage.soname()}]" not in dynamic:
        found.append(f"the soname is not {stage.soname()}")
    before = set(ABI.read_text(encoding="utf-8").split())
    found += [f"gone: {' '.join(sorted(before - now))}"] * bool(before - now)
    return found + [f"new: {' '.join(sorted(now - before))}"] * bool(now - before)


def _copy_and_build(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    stage.copy_sources(folder)
    stage.run("cmake", *CONFIGURE, "-S", folder, "-B", folder / "build" / "here")
    stage.run("cmake", "--build", folder / "build" / "here", "--target", "hakmem", "hakmem_static")
    return folder / "build" / "here" / "stripped"


def reproducible() -> tuple[list[str], Path]:
    """Files that differ when built in two folders of different names and depths."""
    first = _copy_and_build(stage.OUT / "twice" / "a")
    second = _copy_and_build(stage.OUT / "twice" / "another" / "and-deeper")
    found = [path.name for path in sorted(first.iterdir()) if stage.digest(path) != stage.digest(second / path.name)]
    return [f"differs between two folders: {name}" for name in found], first


def bill(libraries: Path) -> Path:
    """A software bill of materials as CycloneDX 1.5: the observer has parts of the C library, as a static program; else no part
    is another's."""
    version, (name, _, number) = stage.version(), os.confstr("CS_GNU_LIBC_VERSION").partition(" ")
    libc = {"type": "library", "name": name, "version": number, "bom-ref": name, "description": "parts of it, in hakmem-observe"}
    files = [{"type": "file", "name": path.name, "hashes": [{"alg": "SHA-256", "content": stage.digest(path)}]}
             for path in sorted(libraries.iterdir())]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'hakmem/{version}/{files}')}",
                "metadata": {"component": {"type": "library", "name": "hakmem", "version": version,
                                           "licenses": [{"license": {"id": "MIT"}}], "bom-ref": "hakmem"}},
                "components": [*files, libc], "dependencies": [{"ref": "hakmem", "dependsOn": [name]}]}
    path = stage.OUT / f"hakmem-{version}.cdx.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def checksums() -> Path:
    """Of all packages that are there."""
    kinds = ("*.deb", "*.rpm", "*.whl", "*.crate", "*.tar.gz", "*.cdx.json")
    path = stage.OUT / "SHA256SUMS"
    path.write_text("".join(f"{stage.digest(one)}  {one.name}\n" for kind in kinds for one in sorted(stage.OUT.glob(kind))),
                    encoding="utf-8")
    return path


def packed() -> list[str]:
    """Sources that the crate lacks: all that unity.c and cold.c need must be there."""
    folder = crate.sources_only() / "hakmem-sys" / "csrc"
    return [f"the crate lacks {name}" for name in ("src/unity.c", "src/cold.c", "src/conf/presets.def", "observe/library.list",
            "include/hakmem/hakmem.h") if not (folder / name).exists()]


def check() -> int:
    stage.OUT.mkdir(parents=True, exist_ok=True)
    stage.need("cmake", "ninja", "readelf", "nm")
    differences, libraries = reproducible()
    shared = next(path for path in libraries.iterdir() if re.search(r"\.so\.[\d.]+\d$", path.name))
    failed = 0
    for title, found in (("versions and changelog agree", versions()), ("the ABI is that of test/golden/symbols.txt", abi(shared)),
                         ("two folders, the same bits", differences), ("the crate is whole", packed())):
        failed += bool(found)
        print("\n".join(f"FAIL  {title}: {one}" for one in found) or f"ok    {title}")
    print(f"ok    bill of materials: {bill(libraries)}\nok    checksums: {checksums()}")
    return 1 if failed else 0
