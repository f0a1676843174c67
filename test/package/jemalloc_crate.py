#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Rust program on jemalloc's crates (test/consumer/jemalloc): are its metrics those of the observer, and its profile one of jemalloc's?

Usage: jemalloc_crate.py PROGRAM OBSERVER
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../observe"))
from observing import document  # noqa: E402


def main(program, observer):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HAKMEM_") and "MALLOC_CONF" not in name}
    environment["HAKMEM_OPTIONS"] = "guard:0"
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/profile"
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
            process.stdout.readline()
            line = process.stdout.readline()
            figures = document(observer, "stats", process.pid)["bytes"]
            explained = document(observer, "explain", process.pid)
            process.stdin.write(path + "\n")
            process.stdin.close()
        others = next(cause["bytes"] for cause in explained["causes"] if cause["name"] == "others")
        wanted = figures["live"] + figures["large"] + figures["huge"], explained["sum_bytes"] - others
        have = tuple(map(int, line.split()))
        print("allocated and resident:", have, "by the observer:", wanted, flush=True)
        assert process.returncode == 0 and have[0] > 30 << 20, process.returncode
        assert have[0] == wanted[0], (have, wanted)
        assert abs(have[1] - wanted[1]) <= wanted[1] * 0.02, (have, wanted)  # the observer counts pages, the program units
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert text.startswith("heap_v2/") and "\n@ 0x" in text and "\nMAPPED_LIBRARIES:\n" in text, text[:300]


main(*sys.argv[1:])
