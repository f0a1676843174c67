# SPDX-License-Identifier: MIT
"""What `lab scale` measures, in a folder that can be carried to another machine: programs, allocators with the
libraries that they need beside glibc, and the code that measures. It runs where glibc is as new as here, or newer."""
from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import Callable

from . import arms, micro, peers, place, results, scale_run
from .errors import LabError
from .model import ArmInfo

NAME = "hakmem-scale"  # the folder in the archive
DEFAULT = ("glibc", "mimalloc", "mimalloc2", "snmalloc", "jemalloc", "tcmalloc", "gperftools-debian")
MODULES = ("__init__", "errors", "machine", "model", "palette", "scale_run", "scale_show")
MOST_BYTES = 60_000_000
GLIBC = re.compile(r"^(ld-linux|libc|libm|libdl|librt|libpthread)[.-]")
NEEDED = re.compile(r"^\s*(\S+) => (\S+) \(0x", re.M)
START = '''# SPDX-License-Identifier: MIT
"""python3 scale.py --help"""
import pathlib
import sys

from hakmem_lab import scale_run

sys.exit(scale_run.main(pathlib.Path(__file__).resolve().parent))
'''


def find(names: list[str], libs: dict[str, str], say: Callable[[str], None]) -> list[arms.Arm]:
    """The subject, the same again, and the others that can be had on the system's C library."""
    wanted = arms.with_libs(names or list(DEFAULT), libs)
    specs = [arms.parse(name, libs) for name in dict.fromkeys([arms.SUBJECT, *wanted])]
    found = arms.resolve(specs, libs, progress=say)
    if found[0].info.skip:
        raise LabError(f"{found[0].name}: {found[0].info.skip}")
    kept = [found[0], arms.again(found[0])]
    for arm in found[1:]:
        why = arm.info.skip or ("" if "system" in arm.bases else "it needs another C library than the system's")
        if why:
            say(f"SKIP {arm.name}: {why}")
        else:
            kept.append(arm)
    return kept


def _supporting(library: Path) -> dict[str, Path]:
    """What a library needs beside glibc, by the names it is asked for."""
    said = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    return {name: Path(path) for name, path in NEEDED.findall(said) if not GLIBC.match(name)}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-debug", str(target)], capture_output=True, check=False)


def _arm(info: ArmInfo, folder: Path, taken: dict[str, str]) -> dict:
    """The arm with its library in the folder. The checksum is that of the library before its debug information went."""
    library = ""
    if info.library:
        library = taken.setdefault(info.library, f"lib/{len(taken)}-{Path(info.library).name}")
        if not (folder / library).exists():
            _copy(Path(info.library), folder / library)
            for name, path in _supporting(Path(info.library)).items():
                _copy(path, folder / "support" / name)
    return dataclasses.asdict(dataclasses.replace(info, library=library, flags=results.public(info.flags)))


def fill(folder: Path, found: list[arms.Arm]) -> None:
    """Makes the bundle's folder anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    here = Path(__file__).resolve().parent
    for name in MODULES:
        target = folder / "hakmem_lab" / f"{name}.py"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(here / f"{name}.py", target)
    (folder / "scale.py").write_text(START, encoding="utf-8")
    shutil.copyfile(place.ROOT / "LICENSE", folder / "LICENSE")
    rows = [scale_run.Row(entry["id"], entry["title"], entry["args"].split(), entry.get("least", 1),
                          entry.get("most", 1024)) for entry in micro.scale_rows()]
    for program in {row.argv[0] for row in rows}:
        _copy(place.PROGRAMS / program, folder / "bin" / program)
    taken: dict[str, str] = {}
    plan = {"arms": [_arm(arm.info, folder, taken) for arm in found], "rows": [dataclasses.asdict(row) for row in rows]}
    (folder / scale_run.PLAN).write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & stat.S_IXUSR else 0o644
    return entry


def pack(folder: Path, archive: Path) -> None:
    """The folder as NAME in a .tar.gz."""
    draft = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        with tarfile.open(draft, "w:gz") as file:
            file.add(folder, NAME, filter=_anonymous)
        size = draft.stat().st_size
        if size > MOST_BYTES:
            raise LabError(f"the bundle has {size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}")
        os.replace(draft, archive)
    except OSError as error:
        raise LabError(f"cannot write {archive}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
