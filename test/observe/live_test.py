#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the observer say of a stopped process what the library says of itself?

    live_test.py OBSERVER PROGRAM...

All members of `explain`, `stats` and `map` have to be equal, but for what the report inside costs: its mappings and the code that
it runs are memory of others. Times may be later. A debugger that reads all of its memory changes nothing.
Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""
import contextlib
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from observing import causes, differences, document, load, observe, require_reading

OPTIONS = ["", "guard_rate:100,profile_rate:16k", "huge_pages:0,cache:64m,learn:0", "learn:counterfactual,cgroup:0"]
TIMES = re.compile(r"\.threads\[\d+\]\.idle_ms|\.learner\[\d\]\.since_ms")
COSTS = re.compile(r"\.rss_bytes|\.sum_bytes|\.text")  # of the report inside


def resident(pid):
    return sum(int(line.split()[1]) << 10 for line in Path(f"/proc/{pid}/smaps").read_text().splitlines()
               if line.startswith("Rss:"))


def check_explain(inside, outside, rss):
    before, after = causes(inside["explain"]), causes(outside)
    assert outside["rss_bytes"] == outside["sum_bytes"] == rss, (outside["rss_bytes"], outside["sum_bytes"], rss)
    moved = outside["rss_bytes"] - inside["explain"]["rss_bytes"]
    assert after["others"]["bytes"] - before["others"]["bytes"] == moved, (before["others"], after["others"], moved)
    for name in before.keys() - {"others"}:
        assert before[name] == after[name], (before[name], after[name])
    rest = [difference for difference in differences(inside["explain"], outside)
            if not COSTS.fullmatch(difference[0]) and not difference[0].startswith(".causes")]
    check_times(rest)
    assert list(outside) == list(inside["explain"]), "other members, or in another order"


def check_times(found):
    for path, a, b in found:
        assert TIMES.fullmatch(path), f"{path}: {a} inside, {b} outside"
        assert b >= a, f"{path}: {a} inside, {b} outside"


def check_again(observer, pid, stats):
    """The statistics again and again, a line each time, and as metrics."""
    with subprocess.Popen([observer, "stats", str(pid), "--json", "--every", "0.01"], stdout=subprocess.PIPE, text=True) as run:
        for _ in range(3):
            check_times(differences(stats, json.loads(run.stdout.readline())))
        run.kill()
    status, text, error = observe(observer, "stats", pid, "--metrics")
    assert status == 0, error
    metrics = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert f'hakmem_info{{version="{stats["hakmem"]}"}}' in metrics and int(metrics["hakmem_rss_bytes"]) > 0
    assert all(int(metrics[f"hakmem_{name}_bytes"]) == value for name, value in stats["bytes"].items())


def read_all(pid):
    """As a debugger that writes a core file: where nothing was there, the kernel maps its page of zeros."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(at, 16) for at in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and len(line.split()) == 5:
                for at in range(start, end, 1 << 20):
                    os.pread(memory.fileno(), min(1 << 20, end - at), at)


def at_terminal(columns, *words):
    """What a command prints on a terminal of that width."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    text = b""
    with subprocess.Popen(words, stdout=theirs) as run:
        os.close(theirs)
        with contextlib.suppress(OSError):  # its end
            while piece := os.read(ours, 1 << 16):
                text += piece
    os.close(ours)
    assert run.returncode == 0
    return text.decode().replace("\r\n", "\n")


def check_width(observer, pid):
    """Text keeps to 80 columns, or those of the terminal, and says the same as in lines of any length."""
    def words(text):
        return re.sub(r"\d+", "N", text).split()
    for verb in ("explain", "stats"):
        wide, text = observe(observer, verb, pid, "--wide")[1], observe(observer, verb, pid)[1]
        at_120 = at_terminal(120, observer, verb, str(pid))
        longest, longest_at_120 = (max(map(len, found.splitlines())) for found in (text, at_120))
        assert longest <= 80 < longest_at_120 <= 120 and words(text) == words(wide) == words(at_120), (longest, longest_at_120, text)


def compare(observer, program, options):
    with load(program, options) as (process, inside):
        rss = resident(process.pid)
        status, text, error = observe(observer, "explain", process.pid, "--json", "--stop")
        assert status == 0, error
        assert re.fullmatch(rf"hakmem-observe: process {process.pid} stood still for \d+\.\d ms\n", error), error
        check_explain(inside, json.loads(text), rss)
        check_times(differences(inside["stats"], document(observer, "stats", process.pid, "--stop")))
        check_again(observer, process.pid, inside["stats"])
        check_times(differences(inside["map"], document(observer, "map", process.pid, "--stop")))
        running = document(observer, "explain", process.pid)  # it sleeps: nothing changes either
        assert running["notes"] == [] and running["sum_bytes"] == running["rss_bytes"]
        status, text, error = observe(observer, "explain", process.pid)
        assert status == 0 and error == "" and text.startswith(f"hakmem: {running['hakmem']}, process {process.pid}")
        check_width(observer, process.pid)
        read_all(process.pid)
        read = document(observer, "explain", process.pid)
        assert read["notes"] == [] and read["sum_bytes"] == read["rss_bytes"], read
        for name, cause in causes(running).items():
            assert causes(read)[name] == cause, (cause, causes(read)[name], "after a core file was written")
        sizes = causes(inside["explain"])
        print(Path(program).name, options or "-", {name: sizes[name]["bytes"] for name in sizes})


def main():
    observer, *programs = sys.argv[1:]
    require_reading()
    for program in programs:
        for options in OPTIONS:
            for left in (2, 1, 0):  # the kernel may take pages of a process that sleeps back, on a machine short of memory
                try:
                    compare(observer, program, options)
                    break
                except AssertionError:
                    if left == 0:
                        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
