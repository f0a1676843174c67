# SPDX-License-Identifier: MIT
"""One measurement: one program, once, on one arm."""
from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Optional

from . import place
from .apps import Launch, run_app
from .errors import LabError
from .process import signal_failure
from .rows import Row

RIG = "measure"
SAMPLE_MS = 5
TIMEOUT = 60  # seconds for a workload, unless --timeout says otherwise
LONG_TIMEOUT = 600  # for real programs and the user's own, and workloads too long for the matrix
FEW_WORDS = 160  # of a program's last words, in a failure's reason
STEERING = ("LD_PRELOAD", "LD_AUDIT", "MALLOC_", "_RJEM_MALLOC_", "MIMALLOC_", "GLIBC_TUNABLES", "HAKMEM_OPTIONS",
            "HAKMEM_PROFILE", "TCMALLOC_", "SCUDO_", "HEAPPROFILE", "CPUPROFILE", "PERFTOOLS_")


@dataclasses.dataclass
class Sample:
    """What one run gave: fields for results.jsonl, or the reason why it gave nothing."""

    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    failure: str = ""
    check: str = ""


@dataclasses.dataclass
class How:
    """How to measure, the same for every kind of row."""

    memory: bool = False  # sample RSS while it runs, and look once more after a rest
    scale: float = 1.0
    timeout: float = 0  # seconds; 0: as the kind of row has it
    resting: Optional[Path] = None  # a file that the workload makes when its rest begins


def environment(launch: Launch) -> dict[str, str]:
    """The caller's environment without what would steer an allocator, plus the arm's."""
    env = {key: value for key, value in os.environ.items() if not key.upper().startswith(STEERING)}
    env.update(launch.env)
    return env


@dataclasses.dataclass
class Ran:
    rig: dict[str, Any]
    stdout: bytes
    stderr: bytes

    def last_words(self) -> str:
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:FEW_WORDS]}" if lines else ""


def run_rig(argv: list[str], launch: Launch, how: How, *, env: dict[str, str], timeout: float,
            keep_output: bool = True) -> Ran:
    """Runs argv on the arm under the rig; the rig's figures and what the program printed. Output goes to files, so that
    nothing waits for a reader and nothing is waited for but the rig."""
    rig = place.PROGRAMS / RIG
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as folder:
        out, stdout, stderr = (Path(folder) / name for name in ("rig.json", "stdout", "stderr"))
        command = [str(rig), "--out", str(out), "--timeout", str(max(1, int(timeout)))]
        if launch.preloaded():
            command += ["--preload", launch.preloaded()]
        if how.memory:
            command += ["--sample", str(SAMPLE_MS)]
        command += ["--", *launch.prefix, *argv]
        with open(stdout if keep_output else os.devnull, "wb") as output, open(stderr, "wb") as errors:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=env)
            except OSError as error:
                raise LabError(f"cannot start {rig}: {error.strerror}") from error
            try:
                process.wait()
            except BaseException:  # interrupted: the program must not outlive the lab
                process.terminate()
                process.wait()
                raise
        said = stderr.read_bytes()
        try:
            figures = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            last = said.decode(errors="replace").strip().splitlines()
            raise LabError(f"{argv[0]} could not be measured: {last[-1] if last else error}") from error
        return Ran(figures, stdout.read_bytes() if keep_output else b"", said)


def failure_of(ran: Ran, timeout: float) -> str:
    """Why the program's run does not count; "" if it does."""
    rig = ran.rig
    if b"cannot be preloaded" in ran.stderr:  # the loader goes on without it: that would be another allocator's time
        return "the library cannot be preloaded"
    if rig["timeout"]:
        return f"no end after {timeout:g} s"
    if rig["signal"]:
        return signal_failure(rig["signal"]) + ran.last_words()
    if rig["status"]:
        return f"exit status {rig['status']}{ran.last_words()}"
    if rig.get("loaded") is False:
        return "the library was not loaded (a static or set-uid program?)"
    return ""


def _memory(rig: dict[str, Any]) -> dict[str, Any]:
    return {"peak_kib": rig.get("peak_kib"), "average_kib": rig.get("average_kib"), "curve": rig.get("curve", [])}


def _micro_fields(row: Row, result: dict[str, Any]) -> dict[str, Any]:
    """What a workload reports, every figure of it, under the names of results.jsonl."""
    fields = {key: value for key, value in result.items()
              if isinstance(value, (int, float)) and key not in ("ideal", "rss_after_kib")}
    fields["value"] = result[f"{row.info.metric}_ns"] / result["ops"]
    if "rss_after_kib" in result:
        fields["after_kib"] = result["rss_after_kib"]
    if "latency" in result:
        fields["latency"] = result["latency"]
        fields["histogram"] = result.get("histogram", [])
    return fields


def _micro(row: Row, launch: Launch, how: How, ideal: bool) -> Sample:
    name, *arguments = row.arguments(how.scale)
    program = place.PROGRAMS / (f"{name}.ideal" if ideal else name)
    timeout = how.timeout or (LONG_TIMEOUT if row.named else TIMEOUT)
    env = environment(launch)
    if how.memory and row.settles:
        env["HAK_BENCH_SETTLE"] = "1"
        if how.resting is not None:
            env["HAK_BENCH_RESTING"] = str(how.resting)
    ran = run_rig([str(program), *arguments], launch, how, env=env, timeout=timeout)
    failure = failure_of(ran, timeout)
    if failure:
        return Sample(failure=failure)
    try:
        result = json.loads(ran.stdout.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Sample(failure="printed no result line")
    if launch.library and os.path.realpath(result["malloc"]) != os.path.realpath(launch.library):
        return Sample(failure=f"malloc came from {os.path.basename(result['malloc'])}, the library was not loaded")
    fields = _micro_fields(row, result)
    if how.memory:
        fields.update(_memory(ran.rig))
    return Sample(fields, check=result["check"])


def _app(row: Row, launch: Launch, how: How) -> Sample:
    outcome = run_app(row.app, launch, place.WORK, how.scale, sample_ms=SAMPLE_MS if how.memory else 0,
                      timeout=how.timeout or LONG_TIMEOUT)
    if outcome.failure:
        detail = outcome.detail.splitlines()[-1][:FEW_WORDS] if outcome.detail else ""
        return Sample(failure=f"{outcome.failure}: {detail}" if detail else outcome.failure)
    fields = {"value": outcome.value, "wall_ns": outcome.wall_ns, "cpu_ns": outcome.cpu_ns, "ops": 1,
              "hwm_kib": outcome.peak_kib, "minflt": outcome.minflt}
    if how.memory:
        fields.update(peak_kib=outcome.peak_kib, average_kib=outcome.average_kib, curve=outcome.curve)
    return Sample(fields, check=outcome.check)


def _own(row: Row, launch: Launch, how: How) -> Sample:
    timeout = how.timeout or LONG_TIMEOUT
    ran = run_rig(list(row.command), launch, how, env=environment(launch), timeout=timeout, keep_output=False)
    failure = failure_of(ran, timeout)
    if failure:
        return Sample(failure=failure)
    fields = {"value": ran.rig["wall_ns"] / 1e6, "wall_ns": ran.rig["wall_ns"],
              "cpu_ns": (ran.rig["user_us"] + ran.rig["sys_us"]) * 1000, "ops": 1, "hwm_kib": ran.rig["maxrss_kib"],
              "minflt": ran.rig["minflt"], "majflt": ran.rig["majflt"], "nvcsw": ran.rig["nvcsw"]}
    if how.memory:
        fields.update(_memory(ran.rig))
    return Sample(fields)


def measure(row: Row, launch: Launch, how: How = How(), *, ideal: bool = False) -> Sample:
    """One run of the row on the arm."""
    if row.app is not None:
        return _app(row, launch, how)
    if row.command:
        return _own(row, launch, how)
    return _micro(row, launch, how, ideal)
