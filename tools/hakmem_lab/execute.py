# SPDX-License-Identifier: MIT
"""One measurement: one program, once, on one arm."""
from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from . import place
from .apps import Launch, run_app
from .errors import LabError
from .rows import Row

RIG = "measure"
SAMPLE_MS = 5
TIMEOUT = 60  # seconds for a workload, unless --timeout says otherwise; a real program or the user's own gets more
LONG_TIMEOUT = 600


@dataclasses.dataclass
class Sample:
    """What one run gave: fields for results.jsonl, or the reason why it gave nothing."""

    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str = ""
    check: str = ""


def signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def environment(launch: Launch, settle: bool) -> dict[str, str]:
    """The caller's environment without what would steer an allocator, plus the arm's."""
    steering = ("LD_PRELOAD", "MALLOC_", "MIMALLOC_", "GLIBC_TUNABLES", "HAKMEM_OPTIONS", "HAKMEM_PROFILE", "TCMALLOC_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(steering)}
    env.update(launch.env)
    if settle:
        env["HAK_BENCH_SETTLE"] = "1"
    return env


@dataclasses.dataclass
class Ran:
    rig: dict[str, Any]
    stdout: bytes
    stderr: bytes


def run_rig(argv: list[str], launch: Launch, *, sample_ms: int = 0, timeout: float = TIMEOUT, settle: bool = False,
            keep_output: bool = True) -> Ran:
    """Runs argv on the arm under the rig; the rig's figures and what the program printed."""
    rig = place.PROGRAMS / RIG
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder:
        out = Path(folder) / "rig.json"
        command = [str(rig), "--out", str(out), "--timeout", str(int(timeout))]
        if launch.preloaded():
            command += ["--preload", launch.preloaded()]
        if sample_ms:
            command += ["--sample", str(sample_ms)]
        command += ["--", *launch.prefix, *argv]
        stdout = subprocess.PIPE if keep_output else subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                       env=environment(launch, settle))
        except OSError as error:
            raise LabError(f"cannot start {rig}: {error.strerror}") from error
        try:
            output, errors = process.communicate()
        except BaseException:  # interrupted: the program must not outlive the lab
            process.terminate()
            process.wait()
            raise
        try:
            figures = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            last = errors.decode(errors="replace").strip().splitlines()
            raise LabError(f"{argv[0]} could not be measured: {last[-1] if last else error}") from error
    return Ran(figures, output or b"", errors or b"")


def failure_of(rig: dict[str, Any], timeout: float, stderr: bytes) -> str:
    """Why the program's run does not count; "" if it does."""
    if rig["timeout"]:
        return f"no end after {timeout:g} s"
    last = stderr.decode(errors="replace").strip().splitlines()
    says = f": {last[-1][:160]}" if last else ""
    if rig["signal"]:
        return signal_name(rig["signal"]) + says
    if rig["status"]:
        return f"exit status {rig['status']}{says}"
    return ""


def _memory(rig: dict[str, Any]) -> dict[str, Any]:
    return {"peak_kib": rig.get("peak_kib"), "average_kib": rig.get("average_kib"), "curve": rig.get("curve", [])}


def _micro(row: Row, launch: Launch, ideal: bool, memory: bool, scale: float, timeout: float) -> Sample:
    name, *arguments = row.arguments(scale)
    program = place.PROGRAMS / (f"{name}.ideal" if ideal else name)
    settle = memory and row.settles
    ran = run_rig([str(program), *arguments], launch, sample_ms=SAMPLE_MS if memory else 0, timeout=timeout,
                  settle=settle)
    failure = failure_of(ran.rig, timeout, ran.stderr)
    if failure:
        return Sample(failure=failure)
    try:
        result = json.loads(ran.stdout.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Sample(failure="printed no result line")
    if launch.library and os.path.realpath(result["malloc"]) != os.path.realpath(launch.library):
        return Sample(failure=f"malloc came from {os.path.basename(result['malloc'])}, the library was not loaded")
    clock = result[f"{row.info.metric}_ns"]
    fields = {"value": clock / result["ops"], "wall_ns": result["wall_ns"], "cpu_ns": result["cpu_ns"],
              "ops": result["ops"], "hwm_kib": result["hwm_kib"], "minflt": result["minflt"],
              "majflt": result["majflt"], "nvcsw": result["nvcsw"], "live_peak": result["live_peak"]}
    if memory:
        fields.update(_memory(ran.rig))
        fields["after_kib"] = result.get("rss_after_kib")
    if "latency" in result:
        fields["latency"] = result["latency"]
        fields["histogram"] = result.get("histogram", [])
    return Sample(fields, check=result["check"])


def _app(row: Row, launch: Launch, memory: bool, scale: float) -> Sample:
    outcome = run_app(row.app, launch, place.WORK, scale, sample_ms=SAMPLE_MS if memory else 0)
    if outcome.failure:
        return Sample(failure=outcome.failure)
    fields = {"value": outcome.value, "wall_ns": outcome.wall_ns, "cpu_ns": outcome.cpu_ns, "ops": 1,
              "hwm_kib": outcome.peak_kib, "minflt": outcome.minflt}
    if memory:
        fields.update(peak_kib=outcome.peak_kib, average_kib=outcome.average_kib, curve=outcome.curve)
    return Sample(fields, check=outcome.check)


def _own(row: Row, launch: Launch, memory: bool, timeout: float) -> Sample:
    ran = run_rig(list(row.command), launch, sample_ms=SAMPLE_MS if memory else 0, timeout=timeout, keep_output=False)
    failure = failure_of(ran.rig, timeout, ran.stderr)
    if failure:
        return Sample(failure=failure)
    fields = {"value": ran.rig["wall_ns"] / 1e6, "wall_ns": ran.rig["wall_ns"],
              "cpu_ns": (ran.rig["user_us"] + ran.rig["sys_us"]) * 1000, "ops": 1, "hwm_kib": ran.rig["maxrss_kib"],
              "minflt": ran.rig["minflt"], "majflt": ran.rig["majflt"], "nvcsw": ran.rig["nvcsw"]}
    if memory:
        fields.update(_memory(ran.rig))
    return Sample(fields)


def measure(row: Row, launch: Launch, *, ideal: bool = False, memory: bool = False, scale: float = 1.0,
            timeout: float = 0) -> Sample:
    """One run of the row on the arm; with memory, RSS is sampled while it runs, and once more after a second's rest."""
    if row.app is not None:
        return _app(row, launch, memory, scale)
    if row.command:
        return _own(row, launch, memory, timeout or LONG_TIMEOUT)
    return _micro(row, launch, ideal, memory, scale, timeout or TIMEOUT)
