#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How the heap profile starts and stops: by a letter, by a signal; its bound; and what is told at exit.

Usage: start_test.py PROGRAM
"""
import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

from document import GUARDLESS, Program, again, heap_v2, pprof, profile, run_tests, tell


def test_rate_is_set_and_data_forgotten_when_told(_folder):
    with Program("", "sites") as program:
        program.ready()
        empty = profile(program)
        assert not empty["is_on"] and empty["sites"] == [] and empty["samples"]["own_bytes"] == 0
        assert gzip.decompress(pprof(program))
        tell(program, "rate", "4k")
        again(program)
        full = profile(program)
        assert full["is_on"] and full["rate"] == 4096 and not full["is_whole"] and full["samples"]["taken"] > 100
        tell(program, "rate", "0")
        stopped = profile(program)
        assert not stopped["is_on"] and stopped["samples"]["taken"] >= full["samples"]["taken"]
        tell(program, "reset")
        assert profile(program)["samples"]["taken"] == 0


def corrected(text):
    """Bytes in use and allocated as a reader of heap_v2 has them: each line by the chance of its mean size."""
    rate, sums = int(re.match(r"heap_v2/(\d+)\n", text).group(1)), [0.0, 0.0]
    for line in text.split("\n@")[1:]:
        counts = list(map(int, re.search(r"t\*: (\d+): (\d+) \[(\d+): (\d+)\]", line).groups()))
        for i, (objects, space) in enumerate((counts[:2], counts[2:])):
            sums[i] += space / (1 - math.exp(-space / objects / rate)) if objects else 0
    return sums


def test_heap_v2_after_a_change_of_rate_gives_readers_the_sums_of_the_document(folder):
    """A file has one rate, and its samples are of two."""
    with Program(GUARDLESS + "profile_rate:64k", "sites") as program:
        program.ready()
        for rate in ("4k", "512k", "0"):
            tell(program, "rate", rate)
            again(program)
        document = profile(program)
    text = heap_v2(document)
    truth = [sum(site[kind]["bytes"] for site in document["sites"]) for kind in ("inuse", "alloc")]
    for found, expected in zip(corrected(text), truth):
        assert expected > 1e7 and abs(found - expected) < 0.001 * expected, (found, expected)
    if shutil.which("jeprof"):
        with open(folder + "/heap", "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["jeprof", "--text", "--show_bytes", sys.argv[1], folder + "/heap"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        total = re.search(r"^Total: (\d+) B$", done.stdout, re.M)
        assert total and abs(int(total.group(1)) - truth[0]) < 0.001 * truth[0], (done.stdout[:200], done.stderr[:200], truth)


def test_signal_starts_and_stops(_folder):
    with Program(f"profile_signal:{signal.SIGUSR2:d}", "idle") as program:
        program.ready()
        for is_on in (True, False):
            os.kill(program.pid, signal.SIGUSR2)
            again(program)
            assert profile(program)["is_on"] == is_on


def test_own_memory_is_bounded(_folder):
    with Program(GUARDLESS + "profile_rate:64,profile_bytes:64k", "sites") as program:
        program.ready()
        document = profile(program)
    assert document["samples"]["dropped"] > 1000 and document["samples"]["own_bytes"] <= 64 << 10


# --- at exit ----------------------------------------------------------------------------------------------------------


def test_leaks_are_told_at_exit(_folder):
    with Program(GUARDLESS + "report:leaks,profile_rate:16k", "sites") as program:
        program.ready()
    lines = program.error.splitlines()
    head = re.fullmatch(r"hakmem: leaks: ([\d.]+) MiB \+- [\d.]+ [KM]iB are still allocated, "
                        r"from \d+ samples \(one in 16\.0 KiB\)", lines[0])
    assert head and 40 < float(head.group(1)) < 80, lines[0]
    first = re.fullmatch(r"  ([\d.]+) MiB \+- [\d.]+ [KM]iB in \d+ objects, from \d+ samples", lines[1])
    assert first and 30 < float(first.group(1)) < 60, lines[1]
    assert re.fullmatch(r"    #0 0x[0-9a-f]+ \S+profile_load\+0x[0-9a-f]+", lines[2]), lines[2]


def test_profile_is_written_at_exit_at_the_usual_rate(folder):
    with Program("report:profile,report_file:" + folder + "/p.%p", "sites") as program:
        program.ready()
    with open(f"{folder}/p.{program.pid}", encoding="utf-8") as file:
        document = json.load(file)
    assert document["rate"] == 512 << 10 and document["is_whole"] and document["samples"]["taken"] > 20


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
