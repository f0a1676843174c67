# SPDX-License-Identifier: MIT
"""One process on an arm's allocator under the rig, and what the rig measured of it."""
from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from . import place
from .errors import LabError

# Debian's programs first: a shim of the same name (pyenv, a wrapper script) would be measured instead of the program.
SEARCH = "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/sbin"
C_LIBRARY = "libc.so.6"
KILL_SECONDS = 2  # for the rig to end what its program left behind
STOP_SECONDS = 10  # for a server to end after SIGTERM


@dataclass
class Launch:
    """How to start a process on an arm's allocator."""

    prefix: list[str] = field(default_factory=list)  # put before argv: the loader of another glibc
    preload: str = ""  # library for the rig's --preload, "" for the C library's own allocator
    env: dict[str, str] = field(default_factory=dict)  # additional variables (HAKMEM_OPTIONS …)
    library: str = ""  # the arm's library, whichever way it is loaded; for the caller's checks
    c_library: str = C_LIBRARY  # "" where no program is linked to another allocator

    def preloaded(self) -> str:
        """What the rig has to preload. For the C library's own allocator that is the C library: Debian's redis is
        linked to jemalloc, and without this it would silently run on that. By its plain name, so that another
        loader finds its own. A loader's `--preload` comes after LD_PRELOAD, so then there must be none."""
        return self.preload or ("" if "--preload" in self.prefix else self.c_library)


@dataclass
class Done:
    """What a process left behind when it ended well."""

    stdout: bytes
    stderr: bytes
    measured: dict  # the rig's JSON; empty for stage.plain


class Failed(Exception):
    """The program failed. `failure` is the word for the tables, `detail` what it said last."""

    def __init__(self, failure: str, detail: str = ""):
        super().__init__(f"{failure}: {detail}" if detail else failure)
        self.failure = failure
        self.detail = detail


class BadOutput(Failed):
    """The program ended well, but what it wrote is wrong."""

    def __init__(self, detail: str = ""):
        super().__init__("output differs", detail)


@dataclass
class Totals:
    """The sum of everything the rig measured in one run."""

    wall_ns: int = 0
    cpu_ns: int = 0
    minflt: int = 0
    peak_kib: int = 0
    average_kib: float = 0.0  # weighted with the wall time
    curve: list[tuple[float, float]] = field(default_factory=list)

    def add(self, measured: dict) -> None:
        wall = measured["wall_ns"]
        start_ms = self.wall_ns / 1e6
        self.curve += [(start_ms + ms, kib) for ms, kib in measured.get("curve", [])]
        average = measured.get("average_kib", 0)
        self.average_kib = (self.average_kib * self.wall_ns + average * wall) / max(1, self.wall_ns + wall)
        # A sample can miss a short peak, which ru_maxrss sees; ru_maxrss sees only the largest process.
        self.peak_kib = max(self.peak_kib, measured.get("peak_kib", 0), measured["maxrss_kib"])
        self.wall_ns += wall
        self.cpu_ns += 1000 * (measured["user_us"] + measured["sys_us"])
        self.minflt += measured["minflt"]


def find_program(name: str) -> str:
    """The path of a command, "" if it is not there."""
    return shutil.which(name, path=SEARCH + ":" + os.environ.get("PATH", "")) or ""


def rig() -> Path:
    return Path(os.environ.get("HAKMEM_LAB_MEASURE") or place.PROGRAMS / "measure")


def signal_failure(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def last_words(stderr: bytes) -> str:
    """The end of what a program said: an allocator's message comes just before the abort."""
    lines = stderr.decode(errors="replace").strip().splitlines()
    return " | ".join(lines[-5:])[-600:]


def _tie_to_parent(parent: int) -> Callable[[], None]:
    """For preexec_fn: the rig gets SIGTERM, and passes it on, if the lab dies without cleaning up."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_death_signal = 1  # PR_SET_PDEATHSIG

    def tie() -> None:
        prctl(set_death_signal, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(125)

    return tie


class Process:
    """One program under the rig. Its output goes to files, so that it never waits for a reader."""

    def __init__(self, stage, argv: list[str], stdin, cwd, env, timeout: float):
        self.stage, self.argv = stage, argv
        self.timeout = max(1.0, min(timeout, stage.left()))
        self.overdue = f"no end after {min(timeout, stage.timeout):.0f} s"
        self.folder = Path(tempfile.mkdtemp(prefix="process-", dir=stage.scratch))
        self.report = self.folder / "measured.json"
        with stage.open_input(stdin) as source, self._output("stdout") as out, self._output("stderr") as err:
            try:
                self.popen = subprocess.Popen(
                    self._command(), stdin=source, stdout=out, stderr=err, cwd=cwd or stage.scratch, env=env,
                    start_new_session=True, preexec_fn=_tie_to_parent(os.getpid()))
            except OSError as error:
                raise LabError(f"cannot start {error.filename}: {error.strerror}") from error

    def _command(self) -> list[str]:
        launch = self.stage.launch
        command = [str(rig()), "--out", str(self.report)]
        if launch.preloaded():
            command += ["--preload", launch.preloaded()]
        if self.stage.sample_ms:
            command += ["--sample", f"{self.stage.sample_ms:g}"]
        return command + ["--timeout", f"{self.timeout:.0f}", "--", *launch.prefix, *self.argv]

    def _output(self, name: str):
        return open(self.folder / name, "wb")

    def text(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def wait(self, seconds: float) -> None:
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(self.overdue, last_words(self.text("stderr"))) from None

    def kill(self) -> None:
        """Ends the rig and the program, whatever state they are in."""
        self._kill_children()
        try:
            self.popen.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
        self.popen.wait()

    def _kill_children(self) -> None:
        pid = self.popen.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return
        for child in map(int, children):
            for end in (os.killpg, os.kill):  # the rig puts the program into a group of its own, but not at once
                try:
                    end(child, signal.SIGKILL)
                except OSError:
                    pass

    def end(self) -> None:
        """SIGTERM, and SIGKILL for what does not heed it."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def result(self, stopped: bool = False) -> Done:
        """Reads the rig's report and adds it to the stage's totals; raises Failed if the program did not end well.
        `stopped`: we sent it SIGTERM, so that dying of that is fine."""
        stderr = self.text("stderr")
        words = last_words(stderr)
        try:
            measured = json.loads(self.report.read_text())
        except (OSError, ValueError):
            if self.popen.returncode == -signal.SIGKILL:
                raise Failed(self.overdue, words) from None
            raise LabError(f"the rig could not run {Path(self.argv[0]).name}: {words}") from None
        failure = self._failure(measured, stderr, stopped)
        if failure:
            raise Failed(failure, words)
        self.stage.totals.add(measured)
        return Done(self.text("stdout"), stderr, measured)

    def _failure(self, measured: dict, stderr: bytes, stopped: bool) -> str:
        if b"cannot be preloaded" in stderr:  # the loader goes on without it: that would be another allocator's time
            return "library cannot be preloaded"
        if measured["timeout"]:
            return self.overdue
        if stopped and measured["signal"] == signal.SIGTERM:
            return ""
        if measured["signal"]:
            return signal_failure(measured["signal"])
        return f"exit {measured['status']}" if measured["status"] else ""


def resolve(argv) -> list[str]:
    argv = [str(word) for word in argv]
    if "/" not in argv[0]:
        path = find_program(argv[0])
        if not path:
            raise LabError(f"there is no program '{argv[0]}'")
        argv[0] = path
    return argv


def plain(argv, folder: Path, *, stdin=None, cwd=None, env=None, timeout: float = 120) -> Done:
    """Runs a program without the rig. It has to end well: it is one of our own means, not what is measured."""
    argv = resolve(argv)
    name = Path(argv[0]).name
    source = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": open(stdin or os.devnull, "rb")}
    try:
        done = subprocess.run(argv, cwd=cwd or folder, env=env, timeout=timeout, capture_output=True, check=False,
                              **source)
    except subprocess.TimeoutExpired:
        raise LabError(f"{name} did not end within {timeout:.0f} s") from None
    finally:
        if "stdin" in source:
            source["stdin"].close()
    if done.returncode:
        raise LabError(f"{name} ended with status {done.returncode}: {last_words(done.stderr)}")
    return Done(done.stdout, done.stderr, {})
