# SPDX-License-Identifier: MIT
"""The workloads of bench/micro: building them, and their rows (bench/micro/rows.toml)."""
from __future__ import annotations

import dataclasses
import fcntl
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Optional

from . import place, store
from .errors import LabError
from .model import RowInfo
from .rows import Row

TABLE = place.MICRO / "rows.toml"
KEYS = {"id", "args", "group", "title", "text", "threads", "metric", "quick", "ideal", "settles", "newest", "steady",
        "named"}
SCALE_KEYS = {"id", "args", "title", "least", "most"}


def read_table(path: Path = TABLE, name: str = "row", keys: set[str] = KEYS) -> list[dict]:
    with open(path, "rb") as file:
        try:
            table = tomllib.load(file)[name]
        except (tomllib.TOMLDecodeError, KeyError) as error:
            raise LabError(f"{path}: {error}") from error
    for entry in table:
        wrong = entry.keys() - keys
        if wrong or "id" not in entry or "args" not in entry:
            raise LabError(f"{path}: row '{entry.get('id', '?')}' has unknown keys or misses id or args: "
                           f"{' '.join(sorted(wrong))}")
    return table


def _row(entry: dict) -> Row:
    threads = entry.get("threads", 1)
    program, *arguments = entry["args"].split()
    info = RowInfo(id=entry["id"], group=entry["group"], title=entry["title"], text=entry.get("text", ""),
                   metric=entry.get("metric", "cpu" if threads == 1 else "wall"), unit="ns/op", threads=threads,
                   program=entry["args"].replace("*", ""))
    return Row(info, quick=entry.get("quick", False), ideal=entry.get("ideal", False),
               settles=entry.get("settles", True), named=entry.get("named", False), argv=(program, *arguments))


def catalogue() -> list[Row]:
    return [_row(entry) for entry in read_table()]


def scale_rows() -> list[dict]:
    """The rows of `./hakmem lab scale`."""
    return read_table(name="scale", keys=SCALE_KEYS)


def newest() -> set[str]:
    """Rows that the full matrix measures on the newest C library too."""
    return {entry["id"] for entry in read_table() if entry.get("newest")}


def steady() -> set[str]:
    """Rows whose memory must not grow with the amount of work."""
    return {entry["id"] for entry in read_table() if entry.get("steady")}


def build(progress=lambda text: None, toolchain: Optional[Path] = None) -> None:
    """Compiles the workloads and the rig; says where the log is if that fails. place.PROGRAMS is then a copy that no
    later build changes: a run that takes an hour measures the same programs from start to end. With a toolchain file
    they are those of another C library."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            raise LabError(f"{tool} is missing; install it (Debian: apt-get install cmake ninja-build)")
    folder = place.LAB / ("bench-build" if toolchain is None else f"bench-build-{toolchain.stem}")
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _compile(folder, progress, [] if toolchain is None else [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"])
        place.PROGRAMS = store.keep_folder(folder / "out", "bench")


def _compile(folder: Path, progress, options: list[str]) -> None:
    cache = folder / "CMakeCache.txt"
    if cache.is_file() and f"CMAKE_CACHEFILE_DIR:INTERNAL={folder}\n" not in cache.read_text(encoding="utf-8"):
        cache.unlink()  # the project was moved
    log = folder / "build.log"
    progress("building the workloads" + ("" if log.exists() else ": about half a minute, once"))
    with open(log, "w", encoding="utf-8") as file:
        for command in (["cmake", "-S", str(place.BENCH), "-B", str(folder), "-G", "Ninja",
                         f"-DHAK_BENCH_OUT={folder / 'out'}", *options], ["cmake", "--build", str(folder)]):
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                raise LabError(f"the workloads could not be built; see {log}")


def scaled(row: Row, factor: float) -> Row:
    """The row with factor times the work, under the same name."""
    return dataclasses.replace(row, argv=(row.argv[0], *row.arguments(factor)[1:]))
