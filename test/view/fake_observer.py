#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stands for hakmem-observe: of a process that runs fake_server.py it says what the mode of that one tells, of others that they
do not use hakmem.

    fake_observer.py VERB PID [--json|--metrics] [--every S]
"""
from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import fake_server

REFUSALS = {"nothing": "the process does not use hakmem", "forbidden": "the memory of process 1 may not be read",
            "older": "the process has hakmem with description 77, and this program reads 1"}


def mode_of(pid: str) -> str:
    """"" of a process that has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return ""
    at = next((at for at, word in enumerate(words) if word.endswith("fake_server.py")), None)
    return words[at + 1] if at is not None else "nothing" if words != [""] else ""


def main() -> int:
    verb, pid, *options = sys.argv[1:]
    path = "/metrics" if "--metrics" in options else f"/{verb}.json" if verb == "map" or "--json" in options else f"/{verb}.txt"
    while True:
        mode = mode_of(pid)
        refusal = REFUSALS.get(mode) if mode else f"there is no process {pid}"
        if refusal:
            print(f"hakmem-observe: {refusal}", file=sys.stderr)
            return 1
        sys.stdout.buffer.write(fake_server.text_of(mode, path, int(pid)).rstrip(b"\n") + b"\n")
        sys.stdout.flush()
        if "--every" not in options:
            return 0
        time.sleep(float(options[options.index("--every") + 1]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(1)
