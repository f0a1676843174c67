#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the observer write the heap profile that the library writes of itself, in every form?

    profile_test.py OBSERVER PROGRAM...

PROGRAM has known call sites (sites.c). Of the stopped process and of a core file all has to be equal, but for times, and for
mappings of the kernel that have no segment in a core file.
Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""
import gzip
import json
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import core_file
from observing import differences, document, load, observe, refused, require_reading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../profile"))
import document as pages  # noqa: E402 pylint: disable=wrong-import-position

OPTIONS = ["profile_rate:1,guard:0", "profile_rate:4k,guard_rate:100,huge_pages:0"]
TIMES = re.compile(r"\.time_ns|\.peak\.time_ns|\.sites\[\d+\]\.lifetimes_ns\.oldest_ns")
PPROF_TIMES = (9, 10)  # fields of profile.proto: time_nanos, duration_nanos
# Of each site: all samples, those in use
KNOWN = Counter({(1000, 1000): 1, (300, 300): 1, (500, 0): 1, (50, 50): 2, (20, 20): 1, (400, 0): 1})


def fields(data):
    """The fields of a message: number, and value or bytes."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value
    at, found = 0, []
    while at < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found.append((key >> 3, value))
    return found


HAS_ZLIB = os.environ["HAKMEM_HAS_ZLIB"] == "1"


def pprof_of(document):
    """In gzip where the observer has zlib."""
    assert (document[:2] == b"\x1f\x8b") == HAS_ZLIB, document[:16]
    return [field for field in fields(gzip.decompress(document) if HAS_ZLIB else document) if field[0] not in PPROF_TIMES]


def same(inside, outside):
    for path, a, b in differences(inside, outside):
        assert TIMES.fullmatch(path), f"{path}: {a} inside, {b} outside"
    assert list(inside) == list(outside), "other members, or in another order"


def known(found):
    """What sites.c does, if each allocation is a sample."""
    counts = Counter((site["alloc"]["samples"], site["inuse"]["samples"]) for site in found["sites"])
    assert all(counts[site] == number for site, number in KNOWN.items()), counts
    assert len({site["label"] for site in found["sites"]}) == 3
    assert found["peak"]["live_bytes"] > found["estimate"]["live_bytes"] + (20 << 20)
    assert sum(site["peak"]["bytes"] for site in found["sites"]) >= found["peak"]["live_bytes"] * 0.999
    for site in found["sites"]:
        sizes, in_use = site["sizes"], site["inuse"]
        assert sum(one["samples"] for one in sizes) == in_use["samples"]
        assert abs(sum(one["bytes"] for one in sizes) - in_use["bytes"]) <= len(sizes)
        assert all(one["from"] * one["objects"] <= one["bytes"] < 2 * one["from"] * one["objects"] for one in sizes), sizes
        assert [one["from"] for one in sizes] == sorted({one["from"] for one in sizes})
    assert [len(site["threads"]) for site in found["sites"] if site["alloc"]["samples"] in (300, 1000)] == [1, 1]


def forms(observer, target, found, folder, *words):
    """pprof, and heap_v2 as the tools make it of the document."""
    path = Path(folder, "profile")
    status, text, error = observe(observer, "profile", target, "--format", "heap_v2", *words)
    assert status == 0, error
    assert text == pages.heap_v2(found)
    status, text, error = observe(observer, "profile", target, "--format", "pprof", "-o", path, *words)
    assert status == 0 and text == "", error
    return pprof_of(path.read_bytes())


def without_kernel(found):
    """A core file has no segments for some mappings of the kernel."""
    return {**found, "mappings": [one for one in found["mappings"] if not one["path"].startswith("[v")]}


def compare_core(observer, stopped, core, folder):
    found = document(observer, "profile", core)
    assert found["time_ns"] == os.stat(core).st_mtime_ns
    same(without_kernel(stopped), without_kernel(found))
    forms(observer, core, found, folder)


def compare(observer, program, options, folder):
    own = Path(folder, "own")
    with load(program, options, names=("profile",), preexec_fn=core_file.allow_core, cwd=folder) as (process, inside):
        before = inside["profile"]
        stopped = document(observer, "profile", process.pid, "--stop")
        same(before, stopped)
        same(before, document(observer, "profile", process.pid))  # it sleeps
        if options.startswith("profile_rate:1,"):
            known(stopped)
        forms(observer, process.pid, stopped, folder, "--stop")
        core_file.write(process.pid, own)
        compare_core(observer, stopped, own, folder)
        process.send_signal(signal.SIGABRT)
        process.wait()
    kernel = [path for path in Path(folder).glob("core*") if core_file.kernel_writes_cores()]
    if kernel and os.path.getsize(kernel[0]) > own.stat().st_size // 2:
        compare_core(observer, stopped, kernel[0], folder)
    print(Path(program).name, options, stopped["samples"], f"{len(kernel)} of the kernel's")


def nothing(observer, program):
    """Without samples there is an empty document, and a word about it."""
    with load(program, "", names=("profile",)) as (process, inside):
        status, text, error = observe(observer, "profile", process.pid)
        assert status == 0 and error.count("\n") == 1 and "it has sampled nothing so far" in error, error
        same(inside["profile"], json.loads(text))
        assert json.loads(text)["sites"] == []
        refused(observer, "the report cannot be written", "profile", process.pid, "-o", "/nowhere/file")
        for words in (("--format",), ("--format", "xml"), ("--loud",), ("another",), ("-o",)):
            status, text, error = observe(observer, "profile", process.pid, *words)
            assert status == 1 and text == "" and error.startswith("usage: "), (words, error)


def main():
    observer, *programs = sys.argv[1:]
    require_reading()
    for program in programs:
        for options in OPTIONS:
            with tempfile.TemporaryDirectory() as folder:
                compare(observer, program, options, folder)
    nothing(observer, programs[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
