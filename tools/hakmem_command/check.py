# SPDX-License-Identifier: MIT
"""`hakmem check PID`: whether a process runs on hakmem, which version, from which file, brought in how, with which options.

Status 0: it does; 1: it does not; 2: that cannot be found out."""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Optional

from hakmem_view import installed, observer, process, wording
from hakmem_view.elf import Elf
from hakmem_view.errors import ViewError

from . import foreign, options, table

ABOUT = {"check": "Whether a process runs on hakmem, which version, with which options, from where."}
PRELOAD = "/etc/ld.so.preload"
SECONDS = 10.0  # for what is read of its memory
MOST = 64 << 10  # letters of it


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID|CORE", help="a running process, or a core file")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def _text(path: str) -> str:
    """A small file's, in a line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return " ".join(file.read(MOST).split())
    except OSError:
        return ""


def files(pid: int) -> list[str]:
    """Those that the process has mapped, each once, the program first."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            words_of_lines = [line.rstrip("\n").split(maxsplit=5) for line in lines]
    except PermissionError as error:
        raise observer.forbidden(pid) from error
    except OSError as error:
        process.need()
        raise ViewError(f"there is no process {pid}") from error
    files = dict.fromkeys(one[5] for one in words_of_lines if len(one) == 6 and one[5].startswith("/"))
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return list(files)
    return list({**({program: None} if program in files else {}), **files})


def _mapped(pid: int) -> str:
    """The library's file as the process has it; "" if there is none."""
    return next((path for path in files(pid) if process.LIBRARY in os.path.basename(path)), "")


def _linked(path: str) -> bool:
    file = Elf.open(path)
    return file is not None and any(process.LIBRARY in name for name in file.needed)


def _version(pid: int, path: str) -> str:
    """Stated in the file, which may have been replaced since the process started: then by its name."""
    name = path.removesuffix(" (deleted)")
    stated = path == name and (observer.library_version(process.rooted(pid, name)) or observer.library_version(name))
    if stated:
        return stated
    found = re.search(r"\.so\.(\d+\.\d+\.\d+)$", name)
    return found.group(1) if found else "of an unknown version"


def _way(pid: int) -> str:
    """How the library came into the process."""
    environment = options.environment_of(pid) or {}
    if process.LIBRARY in environment.get("LD_PRELOAD", ""):
        return f"LD_PRELOAD={environment['LD_PRELOAD']}"
    if process.LIBRARY in _text(process.rooted(pid, PRELOAD)):
        return PRELOAD
    if _linked(f"/proc/{pid}/exe"):
        return "the program is linked with it"
    for path in files(pid):
        if ".so" in path and _linked(process.rooted(pid, path)):
            return f"{process.plain(os.path.basename(path))}, which the program uses, is linked with it"
    if process.has_overwritten_environment(pid):
        return ("LD_PRELOAD, most likely: nothing in the process is linked with it, and the program has overwritten its "
                "environment, which would tell")
    return "the program has loaded it while it ran (dlopen)"


def unit_of(pid: int) -> str:
    """The systemd unit it belongs to, if it is a service."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.findall(r"/([^/\n]+\.service)(?=/|$)", text, re.M)
    return process.plain(found[-1]) if found else ""


def _described(pid: int) -> dict:
    path = _mapped(pid)
    found: dict = {"schema": 1, "pid": pid, "command": process.command(pid), "is_on_hakmem": bool(path), "library": path,
                   "version": "", "way": "", "unit": unit_of(pid), "serves": "", "not_read": "", "filter": "", "malloc_of": "", "taken": [], "options": {}}
    if path:
        found["version"], found["way"] = _version(pid, path), _way(pid)
    else:
        inside = observer.library_version(f"/proc/{pid}/exe")
        if not inside:
            return found
        found.update(is_on_hakmem=True, version=inside, way="linked into the program (libhakmem.a)",
                     library=process.plain(os.readlink(f"/proc/{pid}/exe")))
    changed, found["options_from"] = options.of_process(pid, table.load()[1])
    found["options"] = {key: {"value": value, "source": who} for key, (value, who) in changed.items()}
    preloaded = (options.environment_of(pid) or {}).get("LD_PRELOAD", "") or _text(process.rooted(pid, PRELOAD)) or path
    if path:
        found["malloc_of"] = foreign.ahead(pid, files(pid), preloaded)
    found["taken"] = [{**vars(one), "text": foreign.words(one)} for one in foreign.taken(pid, files(pid), preloaded)]
    found.update(_observed(pid))
    if process.is_filtered(pid):
        found["filter"] = f"a seccomp filter: {installed.NAME} profile leaves it alone unless it was started with profile_rate"
    return found


def _rows(where: observer.Observed) -> dict[str, str]:
    rows = where.read("check", seconds=SECONDS).decode("utf-8", "replace").splitlines()
    return {name: process.plain(text) for name, _, text in (row.partition(": ") for row in rows)}


def _observed(pid: int) -> dict[str, str]:
    """Whether it is asked for memory, and what cannot be read of it."""
    try:
        rows = _rows(observer.find(str(pid)))
    except ViewError as error:
        return {"serves": "", "not_read": str(error)}
    return {"serves": rows.get("serves", ""), "not_read": rows.get("not read", "")}


def _hint(pid: int) -> Optional[str]:
    if observer.is_32_bit(pid):
        return "it is a program of 32 bits, which hakmem does not serve"
    environment = options.environment_of(pid) or {}
    if process.LIBRARY in environment.get("LD_PRELOAD", ""):
        return (f"LD_PRELOAD={environment['LD_PRELOAD']} is in its environment, but the library is not loaded: the program "
                "is static or set-uid, or has file capabilities; its C library or processor is another; or the file is not "
                "there in its root")
    return None


def _pid(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise ViewError(f"check: '{process.plain(word)}' is no PID; `{installed.NAME} ps` lists those on hakmem")
    return int(word)


def _core(path: str, is_json: bool) -> int:
    """What is known of a core file: the observer says it."""
    found = _rows(observer.find(path))
    if is_json:
        print(json.dumps({"schema": 1, "core": path, **found}, indent=1))
    else:
        print("\n".join(f"{name:<9}{text}" for name, text in found.items()
                        if (name, text) != ("not read", "nothing")))
    return 0


def run(_: str, given: argparse.Namespace) -> int:
    if os.path.isfile(given.pid) and not given.pid.isdigit():
        return _core(given.pid, given.json)
    given.pid = _pid(given.pid)
    found = _described(given.pid)
    if given.json:
        print(json.dumps(found, indent=1))
        return 0 if found["is_on_hakmem"] else 1
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 1 << 16
    print(wording.clip(f"{process.called(given.pid)}: {found['command']}", max(width, 60)))
    if not found["is_on_hakmem"]:
        print("is not on hakmem")
        hint = _hint(given.pid)
        if hint:
            print("\n".join(_row("", hint, width)))
        return 1
    print(f"is on hakmem {found['version']}")
    rows = [("library", found["library"]), ("by", found["way"]), ("service", found["unit"]), ("serves", found["serves"]),
            ("not read", found["not_read"] if found["not_read"] != "nothing" else ""), ("filter", found["filter"]),
            ("malloc", _malloc_words(found["malloc_of"])), *(("names", one["text"]) for one in found["taken"]), ("options", _options_words(found))]
    for name, text in rows:
        if text:
            print("\n".join(_row(name, text, width)))
    for key, one in sorted(found["options"].items()):
        print("\n".join(_row("", f"{key}:{one['value']}  from {one['source']}", width)))
    return 0


def _malloc_words(path: str) -> str:
    name = process.plain(os.path.basename(path))
    return f"{name} has a malloc, which comes before hakmem's: hakmem serves what that passes on, and what has a name that it lacks" if name else ""


def _options_words(found: dict) -> str:
    is_known = found["options_from"] != options.UNKNOWN
    return f"all defaults, {found['options_from']}" if is_known and not found["options"] else found["options_from"]


def _row(name: str, text: str, width: int) -> list[str]:
    """What is copied, such as a path, is not broken."""
    return textwrap.wrap(text, max(width, 60), initial_indent=f"{name:<9}", subsequent_indent=" " * 9, break_long_words=False,
                         break_on_hyphens=False)
