# SPDX-License-Identifier: MIT
"""The options and profiles of this version, in groups. An installed tree has them in options.json."""
from __future__ import annotations

import difflib
import json
import re
import sys
from dataclasses import dataclass
from typing import Iterable, Optional

from hakmem_view import installed

GROUPS = (  # title, names (a pattern), examples; an option that fits none is in the last group
    ("Memory against time", r"memory", ("memory:less", "less memory for more calls of the kernel: one knob in place of the options below",)),
    ("Unused memory", r"retain_.*|huge_.*|learn|scavenger|cgroup|thp.*",
     ("retain_min:8m,retain_percent:10", "keep at most 8 MiB, or 10 % of what is in use", "scavenger:1",
      "return memory also while the program does nothing")),
    ("Caches of threads", r"bin_.*|cache", ("cache:1m", "less room in the caches of many threads",)),
    ("Reports and control", r"report.*|control|only|show|observable|help",
     ("report:explain,report_file:/tmp/%e.%p", "why RSS is what it is, at exit, into a file for each process",
      "report:exit,only:/100m",
      "five lines at exit, of processes that used 100 MiB or more")),
    ("Heap profiler", r"profile_.*", ()),
    ("Checks", r"guard.*|backtrace|sized_check|tags|strict",
     ("guard_rate:1000,backtrace:1", "watch more blocks, print stacks", "sized_check:0",
      "let a program with wrong sized deletes run")),
    ("Others", r".*", ("force_libc:1", "the C library's malloc in the same program: is hakmem the cause?",)),
)


@dataclass
class Option:
    name: str
    type: str
    default: str
    valid: str
    change: str  # when it may change
    text: str


@dataclass
class Profile:
    name: str
    options: str
    text: str


def _document() -> dict:
    if installed.tree:
        return json.loads((installed.DATA / "options.json").read_text(encoding="utf-8"))
    sys.path.insert(0, str(installed.DATA))
    import gen_options
    return gen_options.document()


def load() -> tuple[list[Option], list[Profile]]:
    found = _document()
    return [Option(**one) for one in found["options"]], [Profile(**one) for one in found["profiles"]]


@dataclass
class Theirs:
    """An option of jemalloc's: src/conf/jemalloc_conf.def says what the columns mean."""
    name: str
    rule: str
    ours: str
    otherwise: str
    note: str


@dataclass
class Decay:
    most: Optional[int]  # ms; None: any
    ours: str
    note: str


def of_jemalloc() -> tuple[list[Theirs], list[Decay]]:
    found = _document()
    return [Theirs(**one) for one in found["jemalloc"]], [Decay(**one) for one in found["decay"]]


def hint(name: str, known: Iterable[str]) -> str:
    """What to say behind a name that no option has."""
    near = difflib.get_close_matches(name.lower(), known, 1)
    return f"; did you mean {near[0]}?" if near else f"; `{installed.NAME} options` lists all"


def grouped(options: list[Option]) -> list[tuple[str, list[Option], list[tuple[str, str]]]]:
    """Title, options, examples with what each does; groups without an option are left out."""
    left, found = list(options), []
    for title, pattern, examples in GROUPS:
        those = [one for one in left if re.fullmatch(pattern, one.name)]
        left = [one for one in left if one not in those]
        if those:
            found.append((title, those, list(zip(examples[::2], examples[1::2]))))
    return found


def parse(text: str) -> dict[str, str]:
    """What HAKMEM_OPTIONS says; a bare key is a switch that is on."""
    found = {}
    for part in text.split(","):
        key, _, value = (part.strip() + ":").replace("=", ":", 1).partition(":")
        if key:
            found[key] = value.rstrip(":") if ":" in part or "=" in part else "1"
    return found
