# SPDX-License-Identifier: MIT
"""What all packages are made of: an installed tree of the built libraries, the version, files with settled times."""
from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
OUT = Path(os.environ.get("HAKMEM_PACKAGE_DIR") or ROOT / "build" / "package")
MACHINE = platform.machine()
MACHINES = ("x86_64", "aarch64")
FLAVOURS = {"release": "", "hardened": "hakmem/hardened"}  # of the C library of this machine: folders below lib/


class PackageError(Exception):
    """What the user is told in one line."""


def version() -> str:
    text = (ROOT / "include" / "hakmem" / "hakmem.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"^#define HAK_VERSION_{part} (\d+)", text, re.M).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def soname(name: str = "libhakmem") -> str:
    return f"{name}.so.{version().split('.', maxsplit=1)[0]}"


def moment() -> int:
    """The time of all files in packages: that of the last commit, so that a package can be built again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 946684800


def run(*command: object, **more: object) -> None:
    done = subprocess.run([str(one) for one in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode != 0:
        log = OUT / "failed.log"
        OUT.mkdir(parents=True, exist_ok=True)
        log.write_text(done.stdout, encoding="utf-8")
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["no output"]
        raise PackageError(f"{Path(str(command[0])).name} {command[1] if command[1:] else ''} failed: {lines[-1][:200]}; "
                           f"all of it is in {log}")


def need(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise PackageError(f"missing: {' '.join(missing)}")


def cross_tools(machine: str) -> tuple[str, ...]:
    return () if machine == MACHINE else (f"{machine}-linux-gnu-gcc", f"{machine}-linux-gnu-g++")


def built(preset: str, machine: str = MACHINE) -> Path:
    """The build folder of a preset whose library is there; that for another machine is built here."""
    folder = ROOT / "build" / preset
    if machine != MACHINE:
        need("ninja", *cross_tools(machine))
        folder = ROOT / "build" / "package" / "build" / f"{machine}-{preset}"
        run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/{machine}-linux-gnu.cmake",
            f"-DHAK_FLAVOUR={preset}", "-DHAK_TESTS=OFF")
        run("cmake", "--build", folder, "--target", "hakmem", "hakmem_static")
    if not (folder / "libhakmem.so").exists():
        raise PackageError(f"build/{preset} has no library: ./hakmem build {preset}")
    return folder


def tree(folder: Path, machine: str = MACHINE) -> Path:
    """An installed tree, with the hardened library and, where it was built, that for musl."""
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", built("release", machine), "--prefix", folder)
    library = next(path for path in folder.rglob("libhakmem.so.*") if not path.is_symlink()).parent
    others = {built("hardened", machine): FLAVOURS["hardened"]}
    if machine == MACHINE and (ROOT / "build" / "musl" / "libhakmem.so").exists():
        others[built("musl")] = "hakmem/musl"
    for build_folder, below in others.items():
        (library / below).mkdir(parents=True)
        shutil.copy2(build_folder / "stripped" / f"libhakmem.so.{version()}", library / below / soname())
        if below == "hakmem/musl":  # the hardened library finds the observer's two folders above
            shutil.copy2(build_folder / "stripped" / f"libhakmem-observe.so.{version()}",
                         library / below / soname("libhakmem-observe"))
    return folder


def sources() -> list[str]:
    """Paths of what is committed or about to be, from the top; of a tree without git all but build/."""
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True,
                          check=False)
    if done.returncode == 0:
        return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if path.is_file() and path.relative_to(ROOT).parts[0] not in ("build", ".git"))


def copy_sources(folder: Path, *begins: str) -> None:
    """Those below `begins`, or all."""
    for name in sources():
        if not begins or name.startswith(begins):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def archive(path: Path, top: str, folder: Path) -> None:
    """A .tar.gz of a folder under the name `top`, the same for the same files."""
    when, raw = moment(), io.BytesIO()

    def settled(one: tarfile.TarInfo) -> tarfile.TarInfo:
        one.mtime, one.uid, one.gid, one.uname, one.gname = when, 0, 0, "root", "root"
        one.mode = 0o755 if one.isdir() or one.mode & 0o100 else 0o644
        return one
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as made:
        for one in sorted([folder, *folder.rglob("*")]):
            made.add(one, f"{top}/{one.relative_to(folder)}".removesuffix("/."), recursive=False, filter=settled)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=when) as packed:
        packed.write(raw.getvalue())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
