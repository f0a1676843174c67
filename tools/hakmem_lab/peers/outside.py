# SPDX-License-Identifier: MIT
"""What peers need from outside: commands with a log, tools and packages from apt, a folder with a stamp, a lock.

Nothing here ends the lab. Whatever cannot be had is a Skip with a reason, and the other peers go on."""
from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from .. import place

# Words of the caller's environment that would change how a peer is built or what a probe sees.
_FOREIGN = ("LD_PRELOAD", "GLIBC_TUNABLES", "MAKEFLAGS", "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
_ERROR = re.compile(r"\b(error|fatal|undefined reference|cannot|could not|unable|not found|no such file|failed)\b"
                    r"|^E: ", re.IGNORECASE)
_ECHO = re.compile(r"^(g?make|ninja)\b.*(\*\*\*|Leaving|Entering)|ld returned \d+ exit|^CMake Error at|^\$ ")

# Tool → the packages that bring it: the first that the system's suites have. Debian 12's "cargo" is too old to read
# today's crates, "cargo-web" is not. g++ also brings gcc, cc and the C library's headers.
_PACKAGES = {"cmake": ("cmake",), "make": ("make",), "cc": ("g++",), "c++": ("g++",), "cargo": ("cargo-web", "cargo"),
             "musl-gcc": ("musl-tools",)}


class Skip(Exception):
    """Why a peer cannot take part, in one line."""


def shown(path):
    """A path as the user reads it; inside the repository without this machine's folders."""
    path = Path(path)
    return str(path.relative_to(place.ROOT)) if path.is_relative_to(place.ROOT) else str(path)


def environment(**more):
    env = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return {**env, "LC_ALL": "C", **more}


def last_error(text):
    """The last line of a log that says what went wrong; make's own echo of it does not. Without hosts and folders,
    because reasons get into committed results."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _ECHO.search(line.strip())]
    telling = [line for line in lines if _ERROR.search(line)]
    line = (telling or lines or ["it says nothing"])[-1]
    line = re.sub(r"\w+://[^\s`'\"]+", "(the registry)", line)
    line = re.sub(rf"(?<![\w/.-]){re.escape(str(place.ROOT))}/", "", line)
    return line if len(line) <= 200 else line[:199] + "…"


def run(command, log, cwd=None, seconds=1800, **env):
    """Run with everything it says in the log; Skip if it fails. All its children end with it."""
    command = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", errors="replace") as out:
        out.write(f"$ {shlex.join(command)}\n")
        out.flush()
        start = out.tell()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       cwd=cwd, env=environment(**env), start_new_session=True)
        except OSError as problem:
            raise Skip(f"{command[0]} does not start: {problem.strerror}") from None
        try:
            status = process.wait(seconds)
        except BaseException as problem:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            if isinstance(problem, subprocess.TimeoutExpired):
                raise Skip(f"{command[0]}: no end after {seconds} s (log: {shown(log)})") from None
            raise
    if status != 0:
        said = log.read_bytes()[start:].decode(errors="replace")
        raise Skip(f"{command[0]} failed: {last_error(said)} (log: {shown(log)})")


def output(command, seconds=60, **env):
    """What a command prints; "" if it cannot run or fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=seconds, env=environment(**env), check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def apt_log():
    return place.PEERS / "apt.log"


def _has_candidate(package):
    return re.search(r"Candidate: (?!\(none\))", output(["apt-cache", "policy", package])) is not None


@functools.lru_cache(maxsize=1)
def update_lists():
    run(["apt-get", "-q", "update"], apt_log(), seconds=600)


def install(choices, wanted, progress):
    """From each tuple of package names install the first that there is. Root on Debian and its kin only."""
    names = " ".join(choice[0] for choice in choices)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Skip(f"{wanted}; install it ('apt-get install {names}' as root on Debian)")
    if not all(any(map(_has_candidate, choice)) for choice in choices):
        update_lists()
    packages = [next(filter(_has_candidate, choice), choice[0]) for choice in choices]
    progress(f"installing {' '.join(packages)}")
    command = ["apt-get", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install"]
    command += packages
    try:
        run(command, apt_log(), DEBIAN_FRONTEND="noninteractive")
    except Skip:  # the lists may be older than the mirror
        update_lists()
        run(command, apt_log(), DEBIAN_FRONTEND="noninteractive")


def need(tools, progress):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        choices = list(dict.fromkeys(_PACKAGES[tool] for tool in missing))
        if "cargo" in missing:
            choices.append(("ca-certificates",))  # cargo trusts no registry without them
        install(choices, f"needs {' '.join(missing)}", progress)


def jobs():
    """As many compilers as CPUs, but few enough for a small machine's memory."""
    return str(min(len(os.sched_getaffinity(0)), 8))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Folder:
    """The folder of one peer: its log, its work folder, what was made, and the stamp that says that it is whole."""

    def __init__(self, name):
        self.path = place.PEERS / name
        self.work = self.path / "work"
        self.log = self.path / "build.log"

    def begin(self):
        """Nothing half-made from before, and no stamp until all is done."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "stamp.json").unlink(missing_ok=True)
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def keep(self, path, name):
        """Copy a made file out of the work folder, at once or not at all."""
        shutil.copyfile(path, self.work / name)
        os.chmod(self.work / name, 0o755)
        os.replace(self.work / name, self.path / name)
        return self.path / name

    def finish(self, stamp):
        """`stamp` names a file in "library", whose checksum ties the two together."""
        stamp["sha256"] = sha256(self.path / stamp["library"])
        (self.work / "stamp.json").write_text(json.dumps(stamp, indent=1) + "\n")
        os.replace(self.work / "stamp.json", self.path / "stamp.json")
        shutil.rmtree(self.work, ignore_errors=True)
        return stamp

    def stamp(self, recipe):
        """What was made, if it was made by this recipe and is still there unchanged; else None."""
        try:
            stamp = json.loads((self.path / "stamp.json").read_text())
            whole = stamp["recipe"] == recipe and sha256(self.path / stamp["library"]) == stamp["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return stamp if whole else None


@contextlib.contextmanager
def lock(progress):
    """One lab at a time fetches and builds."""
    place.PEERS.mkdir(parents=True, exist_ok=True)
    with open(place.PEERS / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another lab that fetches or builds peers")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made(folder, recipe, build, rebuild, progress, make, word="built"):
    """The stamp of `folder`; if there is none, what `make()` returns is finished into one."""
    stamp = None if rebuild else folder.stamp(recipe)
    if stamp is None and not build:
        raise Skip(f"not {word} yet")
    if stamp is None:
        with lock(progress):
            stamp = None if rebuild else folder.stamp(recipe)  # another lab may have made it meanwhile
            if stamp is None:
                folder.begin()
                stamp = folder.finish({"recipe": recipe, **make()})
    return stamp
