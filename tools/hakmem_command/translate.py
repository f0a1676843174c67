# SPDX-License-Identifier: MIT
"""`hakmem translate 'MALLOC_CONF=…'`: options of other allocators as ours, and what has no counterpart and why."""
from __future__ import annotations

import argparse
import functools
import os
import re
import shlex
import shutil
import textwrap
from typing import Callable, Optional, Union

from hakmem_view import installed, process
from hakmem_view.errors import ViewError

from . import table

ABOUT = {"translate": "Options of jemalloc, mimalloc, tcmalloc and glibc as ours; without words: those in the environment."}
# Ours, and a note; ours "": nothing is needed, or there is no counterpart, and the note says which.
Answer = tuple[str, str]
Rule = Union[Answer, Callable[[str], Answer]]

NONE_NEEDED = "nothing to set: "
ARENAS = ("", NONE_NEEDED + "heaps follow the number of CPUs")
MAPPING = ("", "no counterpart: addresses are mapped 4 MiB at a time, blocks above 1 MiB on their own")
FILL = ("", "no counterpart: blocks are not filled; --profile debug watches them for use after free")
NO_LIMIT = ("", "no counterpart: a limit is the control group's (memory.max), which hakmem keeps to")


def _number(value: str) -> Optional[int]:
    found = re.fullmatch(r"(-?\d+)([kKmMgG]?)(?:i?[bB])?", value.strip())
    return int(found.group(1)) << " kmg".index(found.group(2).lower() or " ") * 10 if found else None


def _size(count: int, least: int = 0, most: int = 1 << 40) -> str:
    count, at = max(least, min(most, count)), 0
    while count and count % 1024 == 0 and at < 4:
        count, at = count // 1024, at + 1
    return f"{count}{' kmgt'[at].strip()}"


def _is_on(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on", "t", "y", "always")


def _switch(on: Answer, off: Answer) -> Callable[[str], Answer]:
    return lambda value: on if _is_on(value) else off


@functools.lru_cache(maxsize=None)
def _jemalloc() -> tuple[list[table.Theirs], list[table.Decay]]:
    return table.of_jemalloc()


def _kept(milliseconds: int) -> Answer:
    """For how long unused memory stays."""
    found = next(row for row in _jemalloc()[1] if row.most is None or milliseconds <= row.most)
    return found.ours, found.note


def _delay(value: str) -> Answer:
    found = _number(value)
    return ("", "not a number") if found is None else _kept(found)


def _power(option: str, least: int, most: int) -> Callable[[str], Answer]:
    def answer(value: str) -> Answer:
        found = _number(value)
        return (f"{option}:{_size(1 << found, least, most)}", "") if found is not None and 0 <= found < 48 else ("", "not a power")
    return answer


def _bytes(option: str, note: str = "", least: int = 0, most: int = 1 << 40) -> Callable[[str], Answer]:
    def answer(value: str) -> Answer:
        found = _number(value)
        return (f"{option}:{_size(found, least, most)}", note) if found is not None and found >= 0 else ("", "not a size")
    return answer


def _per_cpu(value: str) -> Answer:
    found, cpus = _number(value), os.cpu_count() or 1
    return (f"cache:{_size(found // cpus)}", f"ours is per CPU; divided by the {cpus} of this machine") if found else ("", "not a size")


def _count(value: str) -> Answer:
    found = _number(value)
    return (f"bin_blocks:{min(found, 65536)}", "of each size class") if found is not None and found >= 0 else ("", "not a count")


def _release(value: str) -> Answer:
    try:
        rate = float(value)
    except ValueError:
        return "", "not a number"
    if rate == 0:
        return _kept(-1)
    return (_kept(1)[0], "nearest: a higher rate is a smaller bound") if rate >= 5 else ("", NONE_NEEDED + "unused memory goes after half a second")


def _fixed(option: str) -> Callable[[str], Answer]:
    return _switch((option, ""), ("", NONE_NEEDED + "is the default"))


SAMPLE = _bytes("profile_rate", "bytes between samples")


def _theirs(row: table.Theirs) -> Rule:
    """One row of src/conf/jemalloc_conf.def, which says what each rule means."""
    least, most = (4096, 1 << 20) if row.ours == "bin_bytes" else (1, 1 << 40)
    bound = _number(row.otherwise) or most
    power, size = _power(row.ours, least, most), _bytes(row.ours, "", least, most)

    def answer(value: str) -> Answer:
        found, ours = _number(value), ""
        if row.rule in ("SWITCH", "LACKS", "PROF", "ACTIVE", "FINAL") and value not in ("true", "false"):
            return "", "no valid value: true or false"
        if row.rule == "DECAY":
            return _delay(value)
        if row.rule in ("POWER", "RATE"):
            return ("", row.note) if found is not None and 0 <= found < 48 and 1 << found >= bound else power(value)
        if row.rule == "BYTES":
            return ("", row.note) if found is not None and found >= bound else size(value)
        if row.rule == "WORD":
            ours = row.ours if value == row.otherwise else ""
        elif row.rule == "PREFIX":
            ours = f"{row.ours}:{value}.%p"
        elif row.rule not in ("NONE", "LACKS"):
            ours = row.ours if _is_on(value) else row.otherwise
        return ours, "" if ours else row.note
    return answer


@functools.lru_cache(maxsize=None)
def _jemalloc_rules() -> dict[str, Rule]:
    return {row.name: _theirs(row) for row in _jemalloc()[0]}


MIMALLOC: dict[str, Rule] = {
    "show_stats": _fixed("report:exit"), "verbose": _fixed("show:1"),
    "show_errors": ("", NONE_NEEDED + "misuse always aborts with a report"), "purge_delay": _delay, "reset_delay": _delay,
    "allow_large_os_pages": ("", NONE_NEEDED + "dense memory has (transparent) huge pages"),
    "large_os_pages": ("", NONE_NEEDED + "dense memory has (transparent) huge pages"),
    "allow_thp": _switch(("", NONE_NEEDED + "is the default"), ("huge_pages:0", "")),
    "reserve_huge_os_pages": ("", "no counterpart: huge pages are transparent ones, none is reserved"),
    "eager_commit": MAPPING, "arena_eager_commit": MAPPING, "arena_reserve": MAPPING, "limit_os_alloc": MAPPING,
    "disallow_os_alloc": NO_LIMIT, "use_numa_nodes": ("", "no counterpart: NUMA nodes are the kernel's choice"),
}
TCMALLOC: dict[str, Rule] = {
    "release_rate": _release, "max_total_thread_cache_bytes": _per_cpu, "heap_limit_mb": NO_LIMIT,
    "aggressive_decommit": lambda value: (_kept(0)[0], "") if _is_on(value) else ("", NONE_NEEDED + "is the default"),
    "sample_parameter": SAMPLE, "large_alloc_report_threshold": ("", "no counterpart"), "transfer_num_obj": (
        "", NONE_NEEDED + "threads keep blocks of others"),
}
GLIBC: dict[str, Rule] = {
    "arena_max": ARENAS, "arena_test": ARENAS, "tcache_count": _count, "tcache_max": _bytes("bin_bytes", "", 4096, 1 << 20),
    "trim_threshold": _bytes("retain_percent:0,retain_min"), "mmap_threshold": MAPPING, "mmap_max": MAPPING,
    "top_pad": MAPPING, "mxfast": ("", NONE_NEEDED + "all small sizes are fast"), "perturb": FILL,
    "check": _switch(("profile debug", "glibc's checks"), ("profile debug", "glibc's checks")),
    "hugetlb": lambda value: ("", NONE_NEEDED + "dense memory has huge pages") if value == "1" else
    ("", "no counterpart: huge pages are transparent ones"),
}
NOT_ON = f"sampling stays off, as theirs: {installed.NAME} profile PID begins it at any time"
AT_ANY_TIME = ("", f"no counterpart: {installed.NAME} profile --json FILE PID writes one at any time")
GPERFTOOLS: dict[str, Rule] = {
    "HEAPPROFILE": lambda value: (f"profile_rate:512k,report:profile,report_file:{value}.%p",
                                  f"as JSON at exit, which {installed.NAME} profile --pprof FILE makes pprof's; "
                                  f"{installed.NAME} profile PID before"),
    "HEAP_PROFILE_ALLOCATION_INTERVAL": AT_ANY_TIME, "HEAP_PROFILE_INUSE_INTERVAL": AT_ANY_TIME,
    "HEAP_PROFILE_TIME_INTERVAL": AT_ANY_TIME, "HEAPPROFILESIGNAL": AT_ANY_TIME,
    "HEAPCHECK": lambda value: ("report:leaks", "") if value else ("", NONE_NEEDED + "is off"),
}
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OTHER_NAMES = {"MALLOC_ARENA_MAX": "arena_max", "MALLOC_ARENA_TEST": "arena_test", "MALLOC_TRIM_THRESHOLD_": "trim_threshold",
               "MALLOC_MMAP_THRESHOLD_": "mmap_threshold", "MALLOC_MMAP_MAX_": "mmap_max", "MALLOC_TOP_PAD_": "top_pad",
               "MALLOC_CHECK_": "check", "MALLOC_PERTURB_": "perturb"}
KNOWN = "MALLOC_CONF, _RJEM_MALLOC_CONF, MIMALLOC_*, TCMALLOC_*, GLIBC_TUNABLES, " + ", ".join(sorted([*OTHER_NAMES, *GPERFTOOLS]))


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", metavar="TEXT", nargs="*", help="NAME=VALUE as in the environment")


def pairs(name: str, value: str) -> Optional[list[tuple[str, str, dict[str, Rule]]]]:
    """The options that a variable sets, their values, and the table that knows them; None: another's variable."""
    if name in ("MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF"):
        return [(*one.partition(":")[::2], _jemalloc_rules()) for one in value.split(",") if one.strip()]
    if name == "GLIBC_TUNABLES":
        return [(key.strip().removeprefix("glibc.malloc."), text, GLIBC) for key, _, text in
                (one.partition("=") for one in value.split(":")) if key.strip().startswith("glibc.malloc.")]
    if name in GPERFTOOLS:
        return [(name, value, GPERFTOOLS)]
    if name in OTHER_NAMES:
        return [(OTHER_NAMES[name], value, GLIBC)]
    for prefix, rules in (("MIMALLOC_", MIMALLOC), ("TCMALLOC_", TCMALLOC)):
        if name.startswith(prefix):
            return [(name.removeprefix(prefix).lower(), value, rules)]
    return None


def answer(key: str, value: str, rules: dict[str, Rule], known: dict[str, str]) -> Answer:
    """Ours for one option; what this version has not is no answer."""
    rule = rules.get(key.strip())
    if rule is None:
        return "", "no counterpart known"
    ours, note = rule if isinstance(rule, tuple) else rule(value.strip())
    for name, setting in () if ours.startswith("profile ") else table.parse(ours).items():
        if name not in known or (name == "report" and f"`{setting}`" not in known[name]):
            return "", f"no counterpart in this version, which has no {name}:{setting}"
        if "," in setting or len(setting) > 255:
            return "", "its value cannot stand in HAKMEM_OPTIONS"
    return ours, note


Line = tuple[str, str, str]  # theirs, ours, a note


def _sampling(lines: list[Line]) -> list[Line]:
    """The lines of jemalloc's options, of which those of sampling act together, as in src/conf/jemalloc_conf.c: lg_prof_sample alone does
    not begin it, prof_active:false leaves it off, and a report of it is written only where it is on, to a file."""
    said = {name: value for name, _, value in (theirs.partition(" ") for theirs, _, _ in lines)}
    final = {row.name for row in _jemalloc()[0] if row.rule == "FINAL"}
    is_on = said.get("prof") == "true" and said.get("prof_active") != "false"
    writes = is_on and any(said.get(name) == "true" for name in final)
    found = []
    for theirs, ours, note in lines:
        name = theirs.partition(" ")[0]
        if ours.startswith("profile_rate:") and not is_on:
            ours, note = "", NOT_ON
        elif ours and name in final:
            ours, note = ("", "no report, as theirs: it does not sample") if not is_on else (
                ours if "prof_prefix" in said else f"{ours},report_file:jeprof.%p", note)
        elif ours.startswith("report_file:") and not writes:
            ours, note = "", "nothing to set: no file is written at exit"
        found.append((theirs, ours, note))
    return found


def _one_report(lines: list[Line]) -> list[Line]:
    """Of several reports the one that is written: the last of the heap profile, else the last. The lines of the others say so."""
    kinds = {at: kind for at, (_, ours, _) in enumerate(lines) if (kind := table.parse(ours).get("report"))}
    chosen = max(kinds, key=lambda at: (kinds[at] in ("profile", "leaks"), at), default=0)
    found = list(lines)
    for at, kind in kinds.items():
        if kind != kinds[chosen]:
            theirs, ours, _ = lines[at]
            rest = ",".join(f"{key}:{value}" for key, value in table.parse(ours).items() if not key.startswith("report"))
            found[at] = theirs, rest, (f"report:{kind} is left out: one report is written at exit, here report:{kinds[chosen]} for "
                                       f"{lines[chosen][0].partition(' ')[0]}")
    return found


def translate(settings: list[tuple[str, str]]) -> tuple[dict[str, str], str, list[Line]]:
    """Our options, our profile, and a line for each of theirs."""
    known = {one.name: one.valid for one in table.load()[0]}
    merged: dict[str, str] = {}
    profile, lines = "", []
    for name, value in settings:
        found = pairs(name, value)
        if found is None:
            raise ViewError(f"translate: {process.plain(name)} is no variable of an allocator known here; there are: {KNOWN}")
        is_jemalloc = bool(found) and found[0][2] is _jemalloc_rules()
        last = {key.strip(): at for at, (key, _, _) in enumerate(found)}
        answers = [(process.plain(f"{key.strip()} {text.strip()}"),
                    *(answer(key, text, rules, known) if not is_jemalloc or last[key.strip()] == at else ("", "said again later")))
                   for at, (key, text, rules) in enumerate(found)]
        lines += _sampling(answers) if is_jemalloc else answers
    lines = _one_report(lines)
    for theirs, ours, _ in lines:
        if ours.startswith("profile "):
            profile = ours.split()[1]
        else:  # the rate is that of lg_prof_sample, before prof or behind it
            keeps = {"profile_rate": merged["profile_rate"]} if theirs.startswith("prof ") and "profile_rate" in merged else {}
            merged.update({**table.parse(ours), **keeps})
    return merged, profile, lines


def settings_of(words: list[str]) -> list[tuple[str, str]]:
    """From words as a shell has them: several variables in one, with `export`, in quotes. What is no variable belongs to the value
    before it."""
    found: list[tuple[str, str]] = []
    for word in words:
        try:
            pieces = shlex.split(word)
        except ValueError:  # a quote that does not end
            pieces = [word]
        for piece in pieces:
            name, sign, value = piece.partition("=")
            if sign and (VARIABLE.fullmatch(name) or not found):
                found.append((name, value))
            elif piece != "export" and found:
                found[-1] = (found[-1][0], f"{found[-1][1]} {piece}")
            elif piece != "export":
                found.append((piece, ""))
    return found


def run(_: str, given: argparse.Namespace) -> int:
    settings = settings_of(given.settings)
    if not settings:
        settings = [(name, value) for name, value in sorted(os.environ.items()) if pairs(name, value) is not None]
    if not settings:
        raise ViewError("translate: NAME=VALUE is wanted, such as 'MALLOC_CONF=background_thread:true'")
    merged, profile, lines = translate(settings)
    ours = [f"HAKMEM_PROFILE={profile}"] if profile else []
    if merged:
        ours.append("HAKMEM_OPTIONS=" + ",".join(f"{key}:{value}" for key, value in merged.items()))
    print(" ".join(ours) or "# no option is needed")
    width = max(60, min(110, shutil.get_terminal_size((80, 24)).columns))
    for theirs, our, note in lines:
        for line in textwrap.wrap(f"#   {theirs}: {our + ('; ' if note else '') if our else ''}{note}", width,
                                  subsequent_indent="#     ", break_long_words=False):
            print(line)
    return 0
