# SPDX-License-Identifier: MIT
"""Starts a real program's processes on one arm's allocator, under the rig, and adds up what the rig measured."""
from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Callable, Optional, Union

from .errors import LabError
from .process import SEARCH, BadOutput, Done, Failed, Launch, Process, Totals, last_words, plain, resolve

START_SECONDS = 20  # for a server to become ready


class Server:
    """A program that answers until it is stopped; a context manager."""

    def __init__(self, stage: "Stage", process: Process):
        self.stage, self.process, self.done = stage, process, None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind, error, trace) -> None:
        # A broken connection is the symptom, the server's death the reason: stop() raises the latter.
        if kind is None or issubclass(kind, Exception):
            self.stop()
        else:
            self.process.end()

    @property
    def pid(self) -> int:
        """The rig's process."""
        return self.process.popen.pid

    def alive(self) -> bool:
        return self.process.popen.poll() is None

    def stop(self) -> Done:
        """Ends the server and reads what was measured; a second call returns the first one's result."""
        if self.done is None:
            stopped = self.alive()
            self.process.end()
            self.done = self.process.result(stopped)
        return self.done


class Stage:
    """What one run of one program has at hand."""

    def __init__(self, app, launch: Launch, work: Path, scratch: Path, scale: float, sample_ms: float,
                 timeout: float):
        self.app, self.launch, self.work, self.scratch, self.scale = app, launch, work, scratch, scale
        self.sample_ms, self.timeout = sample_ms, timeout
        self.deadline = time.monotonic() + timeout
        self.totals = Totals()
        self.own_value: Optional[float] = None
        self._processes: list[Process] = []

    def input(self, name: str) -> Path:
        """An input made by App.prepare."""
        return self.work / self.app.name / f"{self.scale:g}" / name

    def open_input(self, stdin: Union[None, bytes, str, Path]):
        """A file to read standard input from: a path, bytes, or nothing."""
        if isinstance(stdin, bytes):
            source = tempfile.TemporaryFile(dir=self.scratch)
            source.write(stdin)
            source.seek(0)
            return source
        return open(stdin if stdin is not None else os.devnull, "rb")

    def _environment(self, env: Optional[dict], measured: bool) -> dict[str, str]:
        """The same for every user and machine: nothing of the caller's may reach the program."""
        home = str(self.scratch)
        base = {"PATH": SEARCH, "HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        return base | (env or {}) | (self.launch.env if measured else {})

    def _start(self, argv, stdin, cwd, env, timeout: float) -> Process:
        process = Process(self, resolve(argv), stdin, cwd, self._environment(env, True), timeout)
        self._processes.append(process)
        return process

    def run(self, argv, *, stdin=None, cwd=None, env=None, timeout: float = 120) -> Done:
        """One program to its end, on the arm's allocator."""
        process = self._start(argv, stdin, cwd, env, timeout)
        process.wait(process.timeout + 15)  # the rig ends it after `timeout`
        return process.result()

    def serve(self, argv, ready: Union[int, Callable[[], bool]], *, cwd=None, env=None,
              timeout: float = 120) -> Server:
        """A server on the arm's allocator; returns when `ready()` is true, or the port `ready` takes connections."""
        answers = ready if callable(ready) else lambda: _connects(ready)
        server = Server(self, self._start(argv, None, cwd, env, timeout))
        limit = time.monotonic() + min(START_SECONDS, self.left())
        while not answers():
            if not server.alive():
                server.process.result()
                raise Failed("exit 0", "the server ended before it was ready")
            if time.monotonic() > limit:
                server.process.end()
                raise Failed(f"not ready after {START_SECONDS} s", last_words(server.process.text("stderr")))
            time.sleep(0.005)
        return server

    def plain(self, argv, *, stdin=None, cwd=None, env=None, timeout: float = 120) -> Done:
        """A program off the arm's allocator and unmeasured: a client, a check of the output. Where it fails, what it
        was given is to blame."""
        try:
            return plain(argv, self.scratch, stdin=stdin, cwd=cwd, env=self._environment(env, False), timeout=timeout)
        except LabError as error:
            raise BadOutput(str(error)) from None

    def left(self) -> float:
        """Seconds until the run has taken too long."""
        return max(0.0, self.deadline - time.monotonic())

    def port(self) -> int:
        """A free port of 127.0.0.1."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def value(self, value: float) -> None:
        """For programs that measure themselves: decides instead of the rig's time."""
        self.own_value = value

    def close(self) -> None:
        for process in self._processes:
            if process.popen.poll() is None:
                process.end()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False
