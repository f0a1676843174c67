# SPDX-License-Identifier: MIT
"""Where things lie. Everything that is made lies under build/lab, which is never committed."""
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench"
MUSL = ROOT / "cmake" / "musl.cmake"  # CMake's toolchain file of that C library
MICRO = BENCH / "micro"
RESULTS = BENCH / "results"
HAKMEM = ROOT / "build" / "release" / "libhakmem.so"
HARDENED = ROOT / "build" / "hardened" / "libhakmem.so"
LAB = Path(os.environ.get("HAKMEM_LAB_DIR") or ROOT / "build" / "lab")
PROGRAMS = LAB / "bench"  # the compiled workloads; micro.build sets it
PEERS = LAB / "peers"  # the peers' libraries, their sources and build folders
WORK = LAB / "work"  # inputs of real programs
RUNS = LAB / "runs"  # one folder a run: results.jsonl, report.html, figures
