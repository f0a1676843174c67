# SPDX-License-Identifier: MIT
"""Names of jemalloc and tcmalloc that the files of a process take memory by, and the file that serves them: memory by `mallocx`
comes from whoever has that name, even where malloc is hakmem's. And the file whose malloc comes before hakmem's, as that of a program
which has an allocator linked into it."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass

from hakmem_view import process
from hakmem_view.elf import Elf

FAMILIES = {"jemalloc": re.compile(rb"(?:je_)?(?:(?:m|r|x|s|d|sd|n)allocx|mallctl(?:nametomib|bymib)?|malloc_stats_print)"),
            "tcmalloc": re.compile(rb"MallocExtension_\w+|_ZN15MallocExtension\w+|HeapProfiler\w+|tc_(?:c?free\w*|malloc\w*|calloc|"
                                   rb"realloc|memalign|posix_memalign|p?valloc|new\w*|delete\w*|version|mallopt|mallinfo2?)")}
MALLOC = re.compile(b"malloc")
ANY = re.compile(b"(?:" + b"|".join(one.pattern for one in FAMILIES.values()) + b")")


@dataclass
class Taken:
    """What a file takes from another."""

    file: str
    family: str  # whose names they are
    names: list[str]
    server: str  # the file that has them
    is_ours: bool  # it is hakmem, or linked with it, as its libtcmalloc is


def _order(pid: int, files: list[str], read: dict[str, Elf], preloaded: str) -> list[str]:
    """As names are looked up: the program, what is preloaded, what these are linked with, level by level, then what was loaded
    while it ran."""
    by_name = {os.path.basename(path): path for path in reversed(files)}
    by_name.update({one.soname: path for path, one in read.items() if one.soname})
    first = [by_name.get(os.path.basename(path)) for word in re.split("[ :]", preloaded)
             for path in (word, os.path.realpath(process.rooted(pid, word)))]
    level = [files[0], *filter(None, first)]
    found: dict[str, None] = {}
    while level:
        found.update(dict.fromkeys(level))
        level = [by_name[name] for path in level if path in read for name in read[path].needed
                 if name in by_name and by_name[name] not in found]
    return list({**found, **dict.fromkeys(files)})


def _read(pid: int, files: list[str]) -> dict[str, Elf]:
    return {path: file for path in files if (file := Elf.open(process.rooted(pid, path))) is not None}


def ahead(pid: int, files: list[str], preloaded: str) -> str:
    """The file that has a malloc before hakmem, as names are looked up; "" if there is none. Arguments as those of `taken`."""
    read = _read(pid, files)
    for path in _order(pid, files, read, preloaded):
        names = (os.path.basename(path), *(read[path].needed if path in read else ()))
        if process.LIBRARY in names[0]:
            break
        if path in read and read[path].names(MALLOC)[1]:
            return path
        if any(process.LIBRARY in name for name in names):  # its filter: looked up before it
            break
    return ""


def taken(pid: int, files: list[str], preloaded: str) -> list[Taken]:
    """`files`: those mapped, the program first; `preloaded`: LD_PRELOAD."""
    read = _read(pid, files)
    symbols = {path: file.names(ANY) for path, file in read.items()}
    order = _order(pid, files, read, preloaded)
    found: dict[tuple[str, str, str], list[str]] = {}
    for path, (wanted, _) in symbols.items():
        for name in sorted(wanted):
            server = next((one for one in order if one in symbols and name in symbols[one][1]), "")
            family = next(key for key, names in FAMILIES.items() if names.fullmatch(name.encode()))
            found.setdefault((path, family, server), []).append(name)
    return [Taken(path, family, names, server, any(process.LIBRARY in name for name in (os.path.basename(server), *read[server].needed)))
            for (path, family, server), names in found.items() if server]


def words(one: Taken) -> str:
    """A line about it."""
    names = ", ".join(one.names[:3]) + (f" and {len(one.names) - 3} more" if len(one.names) > 3 else "")
    file, server = (process.plain(os.path.basename(path)) for path in (one.file, one.server))
    said = f"{file} uses {names} of {one.family}, which are those of {server}"
    return said if one.is_ours else f"{said}: hakmem serves none of the memory that it takes by them"
