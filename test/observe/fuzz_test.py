#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Broken images of the load's memory: fuzz.c changes words of a core file that is written here.

    fuzz_test.py FUZZ PROGRAM ROUNDS [SEED]
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import core_file
from observing import load


def main():
    fuzz, program, rounds, *seed = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder, "core")
        with load(program, "guard_rate:100,profile_rate:64k") as (process, _):
            core_file.write(process.pid, core)
        return subprocess.run([fuzz, core, *(seed or ["1"]), rounds], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
