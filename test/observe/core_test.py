#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the observer say of a core file what it said of the process when it stood still?

    core_test.py OBSERVER PROGRAM...

The core files are our own, the kernel's where it writes some here, and one without holes. `stats` and `map` have to be
equal; so has `explain`, but for memory of others: code is not in a core file. Nor are pages that were only read, which
look resident in a process: as many bytes as they have may count elsewhere.
Exit status: 0 all is well, 1 not.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

import core_file
from observing import causes, differences, document, load, observe, require_reading

OPTIONS = ["", "guard_rate:100,profile_rate:16k,huge_pages:0"]
TIMES = re.compile(r"\.threads\[\d+\]\.idle_ms|\.learner\[\d\]\.since_ms")
OTHERS = re.compile(r"\.(rss_bytes|sum_bytes|text|notes.*|causes.*)")


def all_of(observer, target, *words):
    return {verb: document(observer, verb, target, *words) for verb in ("explain", "stats", "map")}


def check_same(stopped, core, zero_bytes):
    for verb in ("stats", "map"):
        found = [one for one in differences(stopped[verb], core[verb]) if not TIMES.fullmatch(one[0])]
        assert not found, (verb, found)
    a, b, explained = causes(stopped["explain"]), causes(core["explain"]), core["explain"]
    assert explained["rss_bytes"] == explained["sum_bytes"] == sum(cause["bytes"] for cause in explained["causes"])
    assert explained["notes"] == ["a core file does not tell RSS: the memory that it has counts instead"], explained["notes"]
    rest = [one for one in differences(stopped["explain"], explained)
            if not TIMES.fullmatch(one[0]) and not OTHERS.fullmatch(one[0])]
    assert not rest, rest
    for name in a.keys() - {"others"}:
        assert abs(a[name]["bytes"] - b[name]["bytes"]) <= zero_bytes, (a[name], b[name], zero_bytes)
        assert a[name]["title"] == b[name]["title"] and a[name].keys() == b[name].keys()


def check_dense(observer, stopped, core, folder):
    """Of a file without holes, what does not depend on them."""
    dense = Path(folder, "dense")
    dense.write_bytes(Path(core).read_bytes())
    for verb in ("stats", "map"):
        found = [one for one in differences(stopped[verb], document(observer, verb, dense)) if not TIMES.fullmatch(one[0])]
        assert not found, (verb, found)
    explained = document(observer, "explain", dense)
    assert 0 < explained["rss_bytes"] == explained["sum_bytes"]
    dense.unlink()


def check_debugger(observer, core):
    """As gdb's gcore writes it: what it leaves to the mapped files has no segment at all."""
    def change(segments, _append):
        segments[:] = [one for one in segments if one[0] != 1 or one[5]]
    same, path = core_file.changed(core, "same", lambda *_: None), core_file.changed(core, "debugger", change)
    found = list(differences(all_of(observer, same), all_of(observer, path)))
    assert not found, found
    same.unlink()
    path.unlink()


def main():
    observer, *programs = sys.argv[1:]
    require_reading()
    for program in programs:
        for options in OPTIONS:
            with tempfile.TemporaryDirectory() as folder:
                own = Path(folder, "own")
                with load(program, options, "abort", preexec_fn=core_file.allow_core, cwd=folder) as (process, _):
                    stopped = all_of(observer, process.pid, "--stop")
                    zero_bytes = core_file.write(process.pid, own)
                check_same(stopped, all_of(observer, own), zero_bytes)
                check_dense(observer, stopped, own, folder)
                check_debugger(observer, own)
                status, text, error = observe(observer, "explain", own)
                assert status == 0 and error == "" and "process" in text.splitlines()[0]
                kernel = [path for path in Path(folder).iterdir() if path.name.startswith("core")]
                if kernel and core_file.kernel_writes_cores() and os.path.getsize(kernel[0]) > own.stat().st_size // 2:
                    check_same(stopped, all_of(observer, kernel[0]), zero_bytes)
                print(Path(program).name, options or "-", "our own core file,", f"{len(kernel)} of the kernel's,",
                      f"{zero_bytes} bytes that were only read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
