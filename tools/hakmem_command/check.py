# SPDX-License-Identifier: MIT
"""`hakmem check PID`: whether a process runs on hakmem, which version, from which file, brought in how, with which options.

Status 0: it does; 1: it does not; 2: that cannot be found out."""
from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Optional

from hakmem_view import installed, process, source
from hakmem_view.elf import Elf
from hakmem_view.errors import ViewError

from . import options, table

ABOUT = {"check": "Whether a process runs on hakmem, which version, with which options, from where."}
VERSION = re.compile(rb"HTTP/1\.0 %s\r\nServer: hakmem/([0-9]+\.[0-9]+\.[0-9]+)\r\n")
PRELOAD = "/etc/ld.so.preload"
MOST = 64 << 20  # bytes of a file that are searched
ARCHIVE = b"hak_malloc_usable_size\0"  # in the symbols of programs that the archive is linked into


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", metavar="PID")
    parser.add_argument("--json", action="store_true")


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MOST)
    except OSError:
        return b""


def _files(pid: int) -> list[str]:
    """Those that the process has mapped, each once."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            words_of_lines = [line.rstrip("\n").split(maxsplit=5) for line in lines]
    except PermissionError as error:
        raise ViewError(f"no permission to look into {process.called(pid)}: its owner and root may") from error
    except OSError as error:
        process.need()
        raise ViewError(f"there is no process {pid}") from error
    return list(dict.fromkeys(one[5] for one in words_of_lines if len(one) == 6 and one[5].startswith("/")))


def _mapped(pid: int) -> str:
    """The library's file as the process has it; "" if there is none."""
    return next((path for path in _files(pid) if process.LIBRARY in os.path.basename(path)), "")


def _linked(path: str) -> bool:
    file = Elf.open(path)
    return file is not None and any(process.LIBRARY in name for name in file.needed)


def _version(pid: int, path: str) -> str:
    """Stated in the file, which may have been replaced since the process started: then by its name."""
    name = path.removesuffix(" (deleted)")
    if path == name:
        found = VERSION.search(_bytes(process.rooted(pid, name)) or _bytes(name))
        if found:
            return found.group(1).decode()
    found = re.search(r"\.so\.(\d+\.\d+\.\d+)$", name)
    return found.group(1) if found else "of an unknown version"


def _way(pid: int) -> str:
    """How the library came into the process."""
    environment = options.environment_of(pid) or {}
    if process.LIBRARY in environment.get("LD_PRELOAD", ""):
        return f"LD_PRELOAD={environment['LD_PRELOAD']}"
    if process.LIBRARY in _bytes(process.rooted(pid, PRELOAD)).decode(errors="replace"):
        return PRELOAD
    if _linked(f"/proc/{pid}/exe"):
        return "the program is linked with it"
    for path in _files(pid):
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
                   "version": "", "way": "", "unit": unit_of(pid), "socket": None, "options": {}}
    if path:
        found["version"], found["way"] = _version(pid, path), _way(pid)
    else:
        program = _bytes(f"/proc/{pid}/exe")
        inside = VERSION.search(program)
        if inside is None:
            return found
        found.update(is_on_hakmem=True, version=inside.group(1).decode(), way="linked into the program (libhakmem.a)",
                     library=process.plain(os.readlink(f"/proc/{pid}/exe")))
    changed, found["options_from"] = options.of_process(pid, table.load()[1])
    found["options"] = {key: {"value": value, "source": who} for key, (value, who) in changed.items()}
    try:
        found["socket"] = source.find(str(pid)).address
    except ViewError:
        pass
    return found


def _hint(pid: int) -> Optional[str]:
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


def run(_: str, given: argparse.Namespace) -> int:
    given.pid = _pid(given.pid)
    found = _described(given.pid)
    if given.json:
        print(json.dumps(found, indent=1))
        return 0 if found["is_on_hakmem"] else 1
    print(f"{process.called(given.pid)}: {found['command'][:100]}")
    if not found["is_on_hakmem"]:
        print("is not on hakmem")
        hint = _hint(given.pid)
        if hint:
            print(hint)
        return 1
    print(f"is on hakmem {found['version']}")
    print(f"library  {found['library']}\nby       {found['way']}")
    if found["unit"]:
        print(f"service  {found['unit']}")
    print(f"socket   {found['socket'] or 'none (option control)'}")
    if found["options"]:
        print(f"options  {found['options_from']}")
        for key, one in sorted(found["options"].items()):
            print(f"  {key}:{one['value']}  from {one['source']}")
    else:
        print(f"options  {'' if found['options_from'] == options.UNKNOWN else 'all defaults, '}{found['options_from']}")
    return 0
