# SPDX-License-Identifier: MIT
"""From addresses to functions, files and lines: llvm-symbolizer, else addr2line, else the symbol tables alone. By the
standard library alone; whatever is missing, names are missing. perf_map.py has code that was made at run time."""
from __future__ import annotations

import bisect
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Optional, Protocol, Sequence

from . import debuginfod, process
from .elf import Elf

DEBUG = Path("/usr/lib/debug")
SECONDS = 120  # for one file
TOOLS = ("llvm-symbolizer", "addr2line")


@dataclass(frozen=True)
class Frame:
    """"" and 0: unknown."""

    function: str
    file: str
    line: int
    is_inlined: bool
    is_python: bool = False


class Mapping(Protocol):
    start: int
    end: int
    offset: int
    path: str
    build_id: str


Names = dict[int, list[Frame]]
UNKNOWN = [Frame("", "", 0, False)]


def names(addresses: Iterable[int], mappings: Sequence[Mapping], pid: int = 0) -> Names:
    """Per return address the frames there, the innermost first, at least one. `pid`: of the process if it lives."""
    found: Names = {}
    groups: dict[tuple[str, str], tuple[Mapping, list[tuple[int, int]]]] = {}
    ordered = sorted(mappings, key=lambda one: one.start)
    starts = [one.start for one in ordered]
    for address in set(addresses):
        found[address] = UNKNOWN
        at = bisect.bisect_left(starts, address) - 1  # it may be the first byte behind a mapping
        where = ordered[at] if at >= 0 and address <= ordered[at].end else None
        if where is not None and where.path.startswith("/"):
            group = groups.setdefault((where.path, where.build_id), (where, []))
            group[1].append((address, address - 1 - where.start + where.offset))
    for where, pairs in groups.values():
        file = _file(where, pid)
        if file is not None:
            found.update(_of_file(*file, pairs))
    return found


def _file(where: Mapping, pid: int) -> Optional[tuple[str, Elf]]:
    """The very file that is mapped: another one with its name would give wrong names."""
    path = where.path.removesuffix(" (deleted)")
    places = [f"/proc/{pid}/map_files/{where.start:x}-{where.end:x}", process.rooted(pid, path)] if pid else []
    for place in [*places, path]:
        found = Elf.open(place)
        if found is not None and (not where.build_id or not found.build_id or found.build_id == where.build_id):
            return place, found
    return _fetched(where.build_id, "executable", path) if where.build_id else None


def _fetched(build_id: str, kind: str, path: str) -> Optional[tuple[str, Elf]]:
    """From a server that has the file of a build id."""
    place = debuginfod.find(build_id, kind, Path(path).name) if debuginfod.is_wanted(path) else None
    found = Elf.open(place) if place else None
    return (place, found) if place and found is not None and found.build_id in ("", build_id) else None


def _debug_file(path: str, file: Elf) -> Optional[tuple[str, Elf]]:
    """Where its debug data was moved to: by build id, or by the name it states."""
    build, link = file.build_id, file.debug_link
    places = [DEBUG / ".build-id" / build[:2] / f"{build[2:]}.debug"] if len(build) > 2 else []
    if link and "/" not in link:
        folder = Path(os.path.realpath(path)).parent
        places += [folder / link, folder / ".debug" / link, DEBUG / folder.relative_to("/") / link]
    for place in places:
        found = Elf.open(str(place))
        if found is not None and str(place) != path and (not build or found.build_id in ("", build)):
            return str(place), found
    return _fetched(build, "debuginfo", path)


def _of_file(path: str, file: Elf, pairs: list[tuple[int, int]]) -> Names:
    wanted = {address: file.address(offset) for address, offset in pairs}
    apart = None if file.has(b".debug_info") else _debug_file(path, file)
    found: Names = {}
    for place, _ in [one for one in (apart, (path, file)) if one]:
        left = {address: at for address, at in wanted.items() if not _is_known(found.get(address))}
        found.update(_by_tool(place, left) if left else {})
    left = {address: at for address, at in wanted.items() if not _is_known(found.get(address))}
    if left:
        found.update(_by_table((apart or (path, file))[1], file, left))
    return found


def _is_known(frames: Optional[list[Frame]]) -> bool:
    return bool(frames) and bool(frames[0].function)


def _by_tool(path: str, wanted: dict[int, int]) -> Names:
    for tool in TOOLS:
        program = shutil.which(tool)
        if program is None:
            continue
        words = [f"--obj={path}", "--inlines", "--demangle", "--output-style=JSON"] if tool == TOOLS[0] else \
            ["-e", path, "-a", "-f", "-i", "-C"]
        order = sorted(set(wanted.values()))
        try:
            done = subprocess.run([program, *words], input="".join(f"{at:#x}\n" for at in order), capture_output=True,
                                  encoding="utf-8", errors="replace", timeout=SECONDS, check=False, env=debuginfod.without())
        except (OSError, subprocess.TimeoutExpired):
            continue
        found = _read_json(done.stdout) if tool == TOOLS[0] else _read_addr2line(done.stdout)
        if found:
            return {address: found[at] for address, at in wanted.items() if at in found}
    return {}


RUST = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "LP": "(", "RP": ")", "C": ",", "SP": "@"}
RUST_SIGN = re.compile(r"\$(LT|GT|RF|BP|LP|RP|C|SP|u[0-9a-f]{1,6})\$")
RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")


def _clean(text: object) -> str:
    """Names of Rust's older form were taken for C++ so far."""
    if not isinstance(text, str) or text.startswith("??"):
        return ""
    if RUST_SIGN.search(text) or RUST_HASH.search(text):
        text = RUST_SIGN.sub(lambda one: RUST.get(one[1]) or chr(min(int(one[1][1:], 16), 0x10FFFF)), RUST_HASH.sub("", text))
        text = text.replace("..", "::").removeprefix("_") if text.startswith("_<") else text.replace("..", "::")
    return text


def _chain(rows: list[tuple[str, str, int]]) -> list[Frame]:
    """All but the last were inlined into the next."""
    return [Frame(function, file, line, at < len(rows) - 1) for at, (function, file, line) in enumerate(rows)]


def _read_json(text: str) -> Names:
    found: Names = {}
    for line in text.splitlines():
        try:
            one = json.loads(line)
            rows = [(_clean(row.get("FunctionName")), _clean(row.get("FileName")), int(row.get("Line") or 0))
                    for row in one.get("Symbol") or []]
            if rows:
                found[int(one["Address"], 16)] = _chain(rows)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _read_addr2line(text: str) -> Names:
    """An address, then two lines a frame."""
    found: Names = {}
    at, rows, function = -1, [], None
    for line in [*text.splitlines(), "0x0"]:
        if line.startswith("0x") and function is None:
            if rows and at >= 0:
                found[at] = _chain(rows)
            at, rows = int(line, 16), []
        elif function is None:
            function = _clean(line)
        else:
            file, _, number = line.partition(" (discriminator")[0].rpartition(":")
            rows.append((function, _clean(file), int(number) if number.isdigit() else 0))
            function = None
    return found


def _by_table(table: Elf, file: Elf, wanted: dict[int, int]) -> Names:
    """Functions alone, as the linker calls them."""
    rows = sorted({(one.value, one.size, one.name) for one in [*table.symbols(), *file.symbols()] if one.is_function})
    starts = [value for value, _, _ in rows]
    found: Names = {}
    for address, at in wanted.items():
        row = bisect.bisect_right(starts, at) - 1
        if row >= 0 and at < rows[row][0] + max(rows[row][1], 1):
            found[address] = [Frame(rows[row][2], "", 0, False)]
    return found
