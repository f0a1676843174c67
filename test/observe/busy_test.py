#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is a process observed that works meanwhile, and has the observer no effect on it?

    busy_test.py OBSERVER PROGRAM ROUNDS

Each document has to be whole. The causes sum to RSS within 1 %, or `notes` says that they do not. The process goes on
after each stop, and after an observer that was killed while it stood.
"""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from observing import document, observe, require_reading


def expect_whole(explained):
    total = sum(cause["bytes"] for cause in explained["causes"])
    assert total == explained["sum_bytes"], explained
    apart = abs(total - explained["rss_bytes"])
    assert apart * 100 <= max(total, explained["rss_bytes"]) or explained["notes"], explained
    assert explained["rss_bytes"] > 0 and len(explained["threads"]) >= 1, explained


def expect_samples(found):
    samples = sum(site["inuse"]["samples"] for site in found["sites"])
    assert samples == found["samples"]["live"] or "notes" in found, (samples, found["samples"])
    assert found["samples"]["taken"] > 0 and found["sites"]


def processor_time(pid):
    return sum(int(word) for word in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])


def expect_runs(process):
    """However slowly: it has used more of the processor in the end."""
    before = processor_time(process.pid)
    while processor_time(process.pid) <= before:
        assert process.poll() is None, f"it ended with {process.returncode}: was a signal lost?"
        os.sched_yield()


def watch(observer, process, rounds):
    assert process.stdout.readline() == "ready\n"
    noted = 0
    for _ in range(rounds):
        explained = document(observer, "explain", process.pid)
        expect_whole(explained)
        noted += len(explained["notes"])
        assert document(observer, "stats", process.pid)["counts"]["threads"] >= 4
        assert len(document(observer, "map", process.pid)["superslabs"]) > 0
        expect_samples(document(observer, "profile", process.pid))
        expect_samples(document(observer, "profile", process.pid, "--stop"))
        expect_whole(document(observer, "explain", process.pid, "--stop"))
        assert observe(observer, "stats", process.pid, "--stop")[0] == 0
        expect_runs(process)
        with subprocess.Popen([observer, "explain", str(process.pid), "--stop"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as killed:
            killed.send_signal(signal.SIGKILL)
        expect_runs(process)
    return json.dumps({"rounds": rounds, "notes": noted})


def main():
    observer, program, rounds = sys.argv[1:]
    require_reading()
    environment = {**os.environ, "HAKMEM_OPTIONS": "profile_rate:16k"}
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            print(watch(observer, process, int(rounds)))
        finally:
            process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
