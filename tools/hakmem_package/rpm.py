# SPDX-License-Identifier: MIT
"""The RPM packages: a tree with the libraries in lib64, as rpm's distributions have it, packed by rpmbuild."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import stage

DEVEL = ("usr/include", "usr/lib64/cmake", "usr/lib64/pkgconfig", "usr/lib64/libhakmem.a", "usr/lib64/libhakmem-observe.a",
         "usr/share/man/man3")
OURS = ("hakmem", "cmake/hakmem")  # ends of the folders that go with the package


def _tree(folder: Path, machine: str) -> Path:
    """What is installed, below usr/; built anew, as the command knows its place relative to the libraries."""
    cross = [] if machine == stage.MACHINE else [f"-DCMAKE_TOOLCHAIN_FILE={stage.ROOT}/cmake/{machine}-linux-gnu.cmake"]
    for preset in ("release", *(name for name in stage.FLAVOURS if name != "release")):
        build = stage.OUT / "build" / f"rpm-{machine}-{preset}"
        stage.run("cmake", "-G", "Ninja", "-S", stage.ROOT, "-B", build, f"-DHAK_FLAVOUR={preset}", "-DHAK_TESTS=OFF",
                  "-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_LIBDIR=lib64", *cross)
        stage.run("cmake", "--build", build, "--target", "hakmem", "hakmem_static")
        below = folder / "usr" / "lib64" / stage.FLAVOURS[preset]
        if preset == "release":
            stage.run("cmake", "--install", build, env={**os.environ, "DESTDIR": str(folder)})
        else:
            below.mkdir(parents=True)
            shutil.copy2(build / "stripped" / f"libhakmem.so.{stage.version()}", below / stage.soname())
    return folder


def _lists(tree: Path) -> tuple[str, str]:
    """The files of both packages, as %files reads them; manuals may be packed by rpmbuild."""
    found: tuple[list[str], list[str]] = ([], [])
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        row = f"/{name}*" if "/man/" in name else f"/{name}"
        if path.is_dir() and not path.is_symlink():
            if not any(f"/{end}/" in f"/{name}/" for end in OURS):
                continue
            row = f"%dir {row}"
        elif name.endswith(("/LICENSE",)):
            row = f"%license {row}"
        found[name.startswith(DEVEL)].append(row)
    return "\n".join(found[0]) + "\n", "\n".join(found[1]) + "\n"


def build(machine: str = stage.MACHINE) -> list[Path]:
    stage.need("rpmbuild", "cmake", "ninja", *stage.cross_tools(machine))
    top = stage.OUT / "stage" / f"rpm-{machine}"
    shutil.rmtree(top, ignore_errors=True)
    tree = _tree(top / "tree", machine)
    texts = dict(zip(("FILES", "FILES_DEVEL"), _lists(tree)))
    spec = (stage.PACKAGING / "rpm" / "hakmem.spec").read_text(encoding="utf-8")
    for name, text in texts.items():
        (top / name).write_text(text, encoding="utf-8")
        spec = spec.replace(f"@{name}@", str(top / name))
    spec = spec.replace("@VERSION@", stage.version()).replace("@TREE@", str(tree))
    (top / "hakmem.spec").write_text(spec, encoding="utf-8")
    stage.run("rpmbuild", "-bb", f"--target={machine}-linux", "--define", f"_topdir {top / 'rpmbuild'}",
              "--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm", "--define", "_docdir /usr/share/doc",
              top / "hakmem.spec", env={**os.environ, "SOURCE_DATE_EPOCH": str(stage.moment())})
    made = []
    for path in sorted((top / "rpmbuild" / "RPMS").glob("*.rpm")):
        shutil.copy2(path, stage.OUT / path.name)
        made.append(stage.OUT / path.name)
    return made
