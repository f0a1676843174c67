# SPDX-License-Identifier: MIT
"""Commands in a fork of the tests' process: as a new Python runs them, but for the second that it takes to load packages."""
from __future__ import annotations

import io
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

BYTECODE = Path(__file__).resolve().parents[2] / "build" / "lab" / "bytecode"  # the source tree stays clean


def run(entry: Path, words: list[str], env: dict[str, str], timeout: float,
        anew: str = "") -> subprocess.CompletedProcess:
    """`python entry words…`, without input, in that environment; the package `anew` reads it when it is loaded."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _become(entry, words, env, (out.fileno(), err.fileno()), anew)
        status = _wait(child, [str(entry), *words], timeout)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(io.TextIOWrapper(file, encoding="utf-8").read())
    return subprocess.CompletedProcess([str(entry), *words], status, *texts)


def _wait(child: int, words: list[str], timeout: float) -> int:
    end = os.pidfd_open(child)
    try:
        if not select.select([end], [], [], timeout)[0]:
            os.kill(child, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout)
    finally:
        os.close(end)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status


def _become(entry: Path, words: list[str], env: dict[str, str], outputs: tuple[int, int], anew: str) -> NoReturn:
    status = 1
    try:
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
            os.dup2(file, number)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)
        os.environ.clear()
        os.environ.update(env)
        for name in [name for name in sys.modules if name.partition(".")[0] == anew]:
            del sys.modules[name]
        sys.pycache_prefix, sys.dont_write_bytecode = str(BYTECODE), False
        sys.path = [str(entry.parent), *filter(None, env.get("PYTHONPATH", "").split(":")), *sys.path]
        sys.argv = [str(entry), *words]
        runpy.run_path(str(entry), run_name="__main__")
        status = 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        else:
            status = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        for file in (sys.stdout, sys.stderr):
            try:
                file.flush()
            except OSError:
                status = status or 120  # as Python itself says it
        os._exit(status)
