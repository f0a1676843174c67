# SPDX-License-Identifier: MIT
"""The wheel: packaging/python with an installed tree in it, tagged by the C library that the libraries need."""
from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

from . import stage

SUMMARY = "a general-purpose memory allocator for Linux: programs run on it unchanged, and it explains their memory"


def glibc_needed(*libraries: Path) -> tuple[int, int]:
    """The highest version of glibc whose symbols they ask for."""
    found = {(2, 17)}  # of manylinux2014, the oldest that pip looks for
    for library in libraries:
        text = subprocess.run(["readelf", "-V", library], capture_output=True, text=True, check=True).stdout
        found |= {(int(major), int(minor)) for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)", text)}
    return max(found)


def programs(tree: Path) -> list[Path]:
    """What asks for a version of glibc: the libraries, and the observer if it is not static."""
    return [*(path for path in tree.rglob("libhakmem*.so*") if "musl" not in path.parts), tree / "bin" / "hakmem-observe"]


def tag(tree: Path, is_musl: bool, machine: str) -> str:
    if is_musl:
        return f"py3-none-musllinux_1_2_{machine}"
    major, minor = glibc_needed(*programs(tree))
    return f"py3-none-manylinux_{major}_{minor}_{machine}"


def _metadata() -> str:
    readme = (stage.PACKAGING / "python" / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: hakmem\nVersion: {stage.version()}\nSummary: {SUMMARY}\nLicense: MIT\n"
            "Requires-Python: >=3.9\nClassifier: Operating System :: POSIX :: Linux\n"
            "Classifier: Programming Language :: Python :: 3\nProvides-Extra: view\nRequires-Dist: rich; extra == 'view'\n"
            "Requires-Dist: typer; extra == 'view'\nRequires-Dist: jinja2; extra == 'view'\n"
            "Provides-Extra: exporter\nRequires-Dist: prometheus_client; extra == 'exporter'\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def _write(path: Path, files: dict[str, tuple[bytes, bool]], record: str) -> None:
    """Files with whether each may be executed; RECORD has the digest of each."""
    lines, when = [], time.gmtime(max(stage.moment(), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name in sorted(files):
            content, may_execute = files[name]
            one = zipfile.ZipInfo(name, when)
            one.compress_type, one.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if may_execute else 0o100644) << 16
            made.writestr(one, content)
            sum_of_it = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={sum_of_it},{len(content)}")
        one = zipfile.ZipInfo(record, when)
        one.compress_type, one.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
        made.writestr(one, "\n".join([*lines, f"{record},,", ""]))


def build(machine: str = stage.MACHINE, is_musl: bool = False) -> Path:
    """For musl with the library built with it; on another machine with that of glibc, which serves both C libraries."""
    stage.need("readelf", "cmake")
    whole = stage.tree(stage.OUT / "stage" / "wheel", machine)
    library = next(path for path in whole.rglob("libhakmem.so.*.*.*") if not path.is_symlink()).parent
    if is_musl and machine == stage.MACHINE:
        musl = library / "hakmem" / "musl" / stage.soname()
        if not musl.exists():
            raise stage.PackageError("build/musl has no library: ./hakmem build musl")
        for name in ("libhakmem", "libhakmem-observe"):
            (library / stage.soname(name)).unlink()
            shutil.copy2(musl.parent / stage.soname(name), library / stage.soname(name))
        for flavour in ("hardened", "musl"):
            shutil.rmtree(library / "hakmem" / flavour)
    else:
        shutil.rmtree(library / "hakmem" / "musl", ignore_errors=True)
    for name in ("libhakmem", "libhakmem-observe"):  # a wheel has no links
        link = library / stage.soname(name)
        if link.is_symlink():
            real = link.resolve()
            link.unlink()
            real.rename(link)
    name, files = tag(whole, is_musl, machine), {}
    info = f"hakmem-{stage.version()}.dist-info"
    for path in sorted((stage.PACKAGING / "python" / "hakmem").glob("*.py*")):
        text = path.read_text(encoding="utf-8").replace("@VERSION@", stage.version())
        files[f"hakmem/{path.name}"] = (text.encode(), False)
    for path in sorted(whole.rglob("*")):
        below = path.relative_to(whole)
        # What other packages are for: linking, and folders that no wheel has.
        if path.is_file() and not path.is_symlink() and below.parts[0] in ("bin", "lib", "share", "include") and \
                below.suffix not in (".a", ".cmake", ".pc") and below.parts[:2] != ("share", "doc") and \
                not re.search(r"\.so\.\d+\.\d+", below.name):
            files[f"hakmem/_tree/{below}"] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    files[f"{info}/METADATA"] = (_metadata().encode(), False)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: hakmem\nRoot-Is-Purelib: false\nTag: {name}\n".encode(), False)
    files[f"{info}/entry_points.txt"] = (b"[console_scripts]\nhakmem = hakmem.__main__:main\n", False)
    files[f"{info}/LICENSE"] = ((stage.ROOT / "LICENSE").read_bytes(), False)
    path = stage.OUT / f"hakmem-{stage.version()}-{name}.whl"
    _write(path, files, f"{info}/RECORD")
    return path
