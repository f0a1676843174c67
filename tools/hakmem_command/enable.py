# SPDX-License-Identifier: MIT
"""`hakmem enable UNIT` and `disable UNIT`: a systemd drop-in that preloads the library, shown before it is written."""
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hakmem_view import installed, process
from hakmem_view.errors import ViewError

from . import table

ABOUT = {"enable": "Starts a systemd unit on hakmem, by a drop-in that is shown before it is written.",
         "disable": "Removes the drop-in that `enable` has written."}
FILE = "hakmem.conf"
MARK = "# Written by `hakmem enable`; `hakmem disable` removes it."
UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\Z")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unit", metavar="UNIT", help="of a service: nginx, or nginx.service")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--user", action="store_true", help="a unit of your own (systemctl --user)")
    parser.add_argument("--root", metavar="DIR", type=Path, help="of an image: writes below DIR and calls no systemctl")
    if parser.prog.endswith("disable"):
        parser.set_defaults(options="", profile="")
        return
    parser.add_argument("--options", metavar="TEXT", default="", help="as in HAKMEM_OPTIONS")
    parser.add_argument("--profile", metavar="P", default="", help="as of run: least, less, balanced, more, most, debug, hardened")


def _systemctl(given: argparse.Namespace, *more: str) -> subprocess.CompletedProcess:
    if shutil.which("systemctl") is None:
        raise ViewError(f"there is no systemctl here: {_otherwise(given)}")
    return subprocess.run(["systemctl", *(["--user"] if given.user else []), *more], capture_output=True, text=True,
                          check=False, env={**os.environ, "LC_ALL": "C"})


def _is_offline(given: argparse.Namespace) -> bool:
    """Whether this system was not started by systemd, as in containers."""
    return _systemctl(given, "is-system-running").stdout.strip() == "offline"


def _otherwise(given: argparse.Namespace) -> str:
    return (f"without systemd set LD_PRELOAD={_library(given)} in the service's own start script (--root DIR writes into an "
            "image)")


def _first_line(done: subprocess.CompletedProcess) -> str:
    return process.plain((done.stderr.strip().splitlines() or ["no reason given"])[0])


def _library(given: argparse.Namespace) -> str:
    # By the name that a later version has, too: units outlive upgrades.
    file = installed.HARDENED if given.profile == "hardened" else installed.LIBRARY
    path = str(file.parent.resolve() / file.name)
    if given.profile == "hardened" and not file.exists():
        raise ViewError(f"enable: there is no hardened library at {path}" + ("" if installed.tree else f"; `{installed.NAME} build hardened` makes it"))
    if re.search(r"[\s:;\"'%]", path):
        raise ViewError(f"a path with such letters cannot be preloaded by a unit: {path}")
    return path


def _apart() -> list[str]:
    """What `run` preloads behind it, too (tools/launch.sh)."""
    try:
        found = re.match(r"glibc (\d+)\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    except ValueError:  # musl
        return []
    return ["libpthread.so.0", "libdl.so.2"] if found and tuple(map(int, found.groups())) < (2, 34) else []


def _folder(given: argparse.Namespace) -> Path:
    if not UNIT.match(given.unit):
        raise ViewError(f"'{process.plain(given.unit)}' is no name of a unit")
    name = given.unit if "." in given.unit else f"{given.unit}.service"
    if not name.endswith(".service"):
        raise ViewError(f"{name} starts no program: a service is wanted")
    if given.root:
        if not given.root.is_dir():
            raise ViewError(f"--root: there is no folder {given.root}")
        return given.root / "etc/systemd/system" / f"{name}.d"
    if given.user:
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd/user" / f"{name}.d"
    return Path("/etc/systemd/system") / f"{name}.d"


def _preload(given: argparse.Namespace, name: str) -> str:
    """Ours, and behind it what the unit preloads already."""
    if given.root:
        return _library(given)
    found = _systemctl(given, "cat", name)
    if found.returncode != 0:
        if _is_offline(given):
            raise ViewError(f"systemd does not run here: {_otherwise(given)}")
        raise ViewError(f"there is no unit {name}" if "No files found" in found.stderr or not found.stderr else
                        f"systemctl cat {name}: {_first_line(found)}")
    shown = _systemctl(given, "show", "--property=Environment", "--value", name).stdout
    found = re.search(r'(?:^|[\s"])LD_PRELOAD=([^\s"]+)', shown)
    others = [one for one in (found.group(1).split(":") if found else []) if process.LIBRARY not in one]
    return ":".join([_library(given), *_apart(), *others])


def _text(given: argparse.Namespace, name: str) -> str:
    options, profiles = table.load()
    known = {one.name for one in options}
    for key in table.parse(given.options):
        if key not in known:
            raise ViewError(f"enable: there is no option '{process.plain(key)}'{table.hint(key, known)}")
    if given.profile and given.profile not in {one.name for one in profiles}:
        raise ViewError(f"enable: there is no profile '{process.plain(given.profile)}'; there are: "
                        + " ".join(one.name for one in profiles))
    if '"' in given.options or "\\" in given.options or "\n" in given.options:
        raise ViewError("enable: --options has letters that a unit cannot pass on")
    lines = [MARK, "[Service]", f"Environment=LD_PRELOAD={_preload(given, name)}"]
    if given.options:
        # systemd expands %p and its like itself
        lines.append(f'Environment="HAKMEM_OPTIONS={given.options.replace("%", "%%")}"')
    if given.profile:
        lines.append(f"Environment=HAKMEM_PROFILE={given.profile}")
    return "\n".join(lines) + "\n"


def _agrees(given: argparse.Namespace) -> bool:
    if given.yes:
        return True
    if not sys.stdin.isatty():
        raise ViewError("nothing is changed without an answer; --yes gives it")
    return input("Write this? [y/N] ").strip().lower() in ("y", "yes")


def _reload(given: argparse.Namespace, name: str) -> None:
    user = " --user" if given.user else ""
    if given.root:
        print(f"{name} follows at its next start")
        return
    done = _systemctl(given, "daemon-reload")
    if done.returncode != 0 and _is_offline(given):
        print(f"systemd does not run here: {name} follows once it does")
        return
    if done.returncode != 0:
        raise ViewError(f"systemctl{user} daemon-reload: {_first_line(done)}")
    print(f"{name} follows at its next start: systemctl{user} restart {name}")


def _enable(given: argparse.Namespace, folder: Path) -> int:
    name, path = folder.name.removesuffix(".d"), folder / FILE
    text = _text(given, name)
    print(f"{path}:\n\n{text}")
    if path.exists() and path.read_text(encoding="utf-8") == text:
        print("is there already")
        return 0
    if not _agrees(given):
        print("nothing is changed")
        return 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ViewError(f"cannot write {path}: {error.strerror}") from error
    _reload(given, name)
    return 0


def _disable(given: argparse.Namespace, folder: Path) -> int:
    name, path = folder.name.removesuffix(".d"), folder / FILE
    if not path.exists():
        raise ViewError(f"{name} has no drop-in of ours: {path} is not there")
    if not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise ViewError(f"{path} was not written by `hakmem enable`: it is left alone")
    try:
        path.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise ViewError(f"cannot remove {path}: {error.strerror}") from error
    print(f"removed {path}")
    _reload(given, name)
    return 0


def run(name: str, given: argparse.Namespace) -> int:
    if not given.root and shutil.which("systemctl") is None:
        _systemctl(given)  # says so
    return (_enable if name == "enable" else _disable)(given, _folder(given))
