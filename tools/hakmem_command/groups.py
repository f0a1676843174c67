# SPDX-License-Identifier: MIT
"""Runs a program in a control group with a limit of memory: a folder of our own where we may make one, version 2 or 1,
else a scope of systemd. Each run has a group of its own, which is gone afterwards."""
from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

# Joins the group before the program is there, so that the group holds all of its memory.
ASKED: list[Path] = []  # files that we changed
ENTER = 'echo $$ > "$0" && exec "$@"'


@dataclass
class Ran:
    """How a program ended."""

    status: int  # of its first process; negative: a signal
    wall: float  # seconds
    cpu: float  # seconds, with the kernel's
    waits: int  # page faults that waited for a disk
    peak: int  # bytes: of the group, else of its largest process
    killed: bool = False  # for memory
    late: bool = False  # it was not done in time
    words: str = ""  # the end of what it said on standard error


def _kill(pids) -> None:
    for pid in pids:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


@dataclass
class Run:
    """What is run."""

    argv: list[str]
    env: dict[str, str]
    errors: Path  # a file for its standard error
    timeout: Optional[float] = None

    def go(self, before: list[str], others=lambda: []) -> Ran:
        """`before`: words of the command in front of the program's; `others`: what is killed with it if it is late."""
        with open(self.errors, "wb") as errors:
            begun = time.monotonic()
            child = subprocess.Popen([*before, *self.argv], env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=errors)
        late = True
        try:
            late = not self._ends(child.pid)
        finally:
            if late:
                _kill([child.pid, *others()])
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        said = self.errors.read_bytes()[-400:].decode(errors="replace").strip().splitlines()
        return Ran(child.returncode, time.monotonic() - begun, used.ru_utime + used.ru_stime,
                   used.ru_majflt, used.ru_maxrss << 10, late=late, words=" | ".join(said[-3:]))

    def _ends(self, pid: int) -> bool:
        """Waits for its end, as long as it may take."""
        try:
            descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):  # before Linux 5.3
            return self._polls(pid)
        try:
            return bool(select.select([descriptor], [], [], self.timeout)[0])
        finally:
            os.close(descriptor)

    def _polls(self, pid: int) -> bool:
        end = time.monotonic() + (self.timeout or float("inf"))
        while time.monotonic() < end:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            time.sleep(0.002)
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def _number(path: Path) -> int:
    found = re.match(r"\d+", _read(path))
    return int(found.group()) if found else 0


class Folder:
    """Groups in a folder of the control groups' file system."""

    def __init__(self, parent: Path, version: int):
        self.parent, self.version, self.count = parent, version, 0

    @property
    def about(self) -> str:
        return f"control groups, version {self.version}"

    def _make(self) -> Path:
        self.count += 1
        folder = self.parent / f"hakmem-fit-{os.getpid()}-{self.count}-{os.urandom(4).hex()}"
        folder.mkdir()
        return folder

    def _limit(self, folder: Path, limit: int) -> None:
        if self.version == 2:
            files = {"memory.max": limit, "memory.swap.max": 0, "memory.oom.group": 1}
        else:
            files = {"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes": limit}
        needed = next(iter(files))
        for name, value in files.items():  # a kernel without swap lacks the others
            try:
                (folder / name).write_text(str(value), encoding="ascii")
            except OSError:
                if name == needed:
                    raise

    def _killed(self, folder: Path) -> bool:
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        found = re.search(r"^oom_kill (\d+)", _read(folder / name), re.M)
        return found is not None and found.group(1) != "0"

    def _peak(self, folder: Path) -> int:
        return _number(folder / ("memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"))

    def _empty(self, folder: Path) -> None:
        """Ends what the program left behind, and removes the group, with groups that it made below."""
        for _ in range(200):
            inner = sorted((one for one in folder.rglob("*") if one.is_dir()), reverse=True)
            for one in [*inner, folder]:
                _kill(_read(one / "cgroup.procs").split())
                try:
                    one.rmdir()
                except OSError:
                    pass
            if not folder.exists():
                return
            time.sleep(0.01)

    def run(self, run: Run, limit: int = 0) -> Ran:
        """`limit`: bytes; 0: none."""
        folder = self._make()
        try:
            if limit:
                self._limit(folder, limit)
            procs = folder / "cgroup.procs"
            ran = run.go(["/bin/sh", "-c", ENTER, str(procs)], lambda: _read(procs).split())
            ran.peak = self._peak(folder) or ran.peak
            ran.killed = self._killed(folder)
            return ran
        finally:
            self._empty(folder)

    def works(self) -> bool:
        """Whether such a group can be made, and has a limit."""
        try:
            folder = self._make()
        except OSError:
            return False
        try:
            self._limit(folder, 1 << 30)
            (folder / "cgroup.procs").read_bytes()
            return os.access(folder / "cgroup.procs", os.W_OK)
        except OSError:
            return False
        finally:
            self._empty(folder)


class Largest:
    """No group: no limit, and the peak is that of the largest process."""

    about = ""

    def run(self, run: Run, limit: int = 0) -> Ran:
        assert limit == 0
        return run.go([])


class Scope:
    """Scopes that systemd makes."""

    def __init__(self, words: list[str]):
        self.words = words
        self.about = "scopes of systemd"

    def run(self, run: Run, limit: int = 0) -> Ran:
        if not limit:
            return run.go([])
        unit = f"hakmem-fit-{os.getpid()}-{os.urandom(4).hex()}.scope"
        try:
            ran = run.go(["systemd-run", *self.words, "--scope", "--quiet", "--collect", f"--unit={unit}",
                          "-p", f"MemoryMax={limit}", "-p", "MemorySwapMax=0", "--"])
        finally:  # with what the program left behind
            subprocess.run(["systemctl", *self.words, "kill", "--signal=KILL", unit], capture_output=True, check=False)
        ran.killed = ran.status == -signal.SIGKILL and not ran.late
        return ran

    def works(self) -> bool:
        words = ["systemd-run", *self.words, "--scope", "--quiet", "--collect", "-p", "MemoryMax=1G", "--", "true"]
        try:
            return subprocess.run(words, capture_output=True, timeout=10, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def _mounts(proc: Path) -> list[tuple[Path, str, str]]:
    """Where file systems of control groups are mounted: place, kind, options of the file system."""
    found = []
    for line in _read_all(proc / "self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        words, more = left.split(), right.split()
        if len(words) > 4 and len(more) > 2 and more[0] in ("cgroup", "cgroup2"):
            found.append((Path(words[4].replace("\\040", " ")), more[0], more[2]))
    return found


def _read_all(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _own(proc: Path, controller: str) -> str:
    """The path of our own group, in the hierarchy of the controller; version 2: ""."""
    for line in _read_all(proc / "self/cgroup").splitlines():
        _, names, path = (line + "::").split(":")[:3]
        if (controller in names.split(",")) if controller else names == "":
            return path.lstrip("/")
    return ""


def _passes_memory(parent: Path) -> bool:
    """Whether groups in a folder of version 2 have limits of memory, if need be by asking for it."""
    control = parent / "cgroup.subtree_control"
    if "memory" in _read(control).split():
        return True
    try:
        control.write_text("+memory", encoding="ascii")
    except OSError:
        return False
    ASKED.append(control)
    return "memory" in _read(control).split()


def give_back() -> None:
    """Folders have no limits of memory any more that had none before."""
    while ASKED:
        try:
            ASKED.pop().write_text("-memory", encoding="ascii")
        except OSError:
            pass  # others use it by now


def folders(proc: Path = Path("/proc")) -> list[Folder]:
    """Where groups of our own may be: beside ours, within it, at the root."""
    found = []
    for place, kind, options in _mounts(proc):
        if kind == "cgroup" and "memory" not in options.split(","):
            continue
        own = place / _own(proc, "memory" if kind == "cgroup" else "")
        for parent in dict.fromkeys((own, own.parent if own != place else place, place)):
            if kind == "cgroup2" and not _passes_memory(parent):
                continue
            found.append(Folder(parent, 2 if kind == "cgroup2" else 1))
    return found


def find(proc: Path = Path("/proc")):
    """The best way there is."""
    for one in folders(proc):
        if one.works():
            return one
    if shutil.which("systemd-run") and Path("/run/systemd/system").is_dir():
        for words in ([], ["--user"]) if os.geteuid() == 0 else (["--user"],):
            scope = Scope(words)
            if scope.works():
                return scope
    return Largest()
