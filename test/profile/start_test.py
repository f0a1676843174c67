#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How the heap profile starts and stops: by POST, by signal, by attaching; its bound; and what is told at exit.

Usage: start_test.py PROGRAM
"""
import gzip
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

from document import GUARDLESS, LIBRARY, Program, SkipTest, fetch, profile, run_tests


def test_rate_is_set_and_data_forgotten_by_post(_folder):
    with Program("control:@hakmem_profile.%p", "sites") as program:
        program.ready()
        name = f"@hakmem_profile.{program.pid}"
        empty = profile(name)
        assert not empty["is_on"] and empty["sites"] == [] and empty["samples"]["own_bytes"] == 0
        assert fetch(name, "/heap_v2")[1].startswith(b"heap_v2/0\n") and fetch(name, "/leaks.txt")[0] == 200
        assert gzip.decompress(fetch(name, "/heap.pb.gz")[1])
        for query in ("", "?", "?rate", "?rate=", "?rate=x", "?rate=2t", "?speed=3", "?rate=1k&x"):
            assert fetch(name, "/profile" + query, "POST")[0] == 400, query
        status, body = fetch(name, "/profile?rate=4k", "POST")
        assert status == 200 and json.loads(body)["rate"] == 4096, body
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        assert program.process.stdout.readline() == "done\n"
        full = profile(name)
        assert full["is_on"] and not full["is_whole"] and full["samples"]["taken"] > 100
        assert fetch(name, "/profile?rate=0", "POST")[0] == 200
        stopped = profile(name)
        assert not stopped["is_on"] and stopped["samples"]["taken"] >= full["samples"]["taken"]
        assert fetch(name, "/profile?rate=0&reset=1", "POST")[0] == 200
        assert profile(name)["samples"]["taken"] == 0


def test_signal_starts_and_stops(_folder):
    with Program(f"profile_signal:{signal.SIGUSR2:d},control:@hakmem_profile.%p", "idle") as program:
        program.ready()
        name = f"@hakmem_profile.{program.pid}"
        for is_on in (True, False):
            os.kill(program.pid, signal.SIGUSR2)
            program.process.stdin.write("\n")
            program.process.stdin.flush()
            assert program.process.stdout.readline() == "done\n"
            assert profile(name)["is_on"] == is_on


def test_own_memory_is_bounded(_folder):
    with Program(GUARDLESS + "profile_rate:64,profile_bytes:64k,control:@hakmem_profile.%p", "sites") as program:
        program.ready()
        document = profile(f"@hakmem_profile.{program.pid}")
    assert document["samples"]["dropped"] > 1000 and document["samples"]["own_bytes"] <= 64 << 10


def find_attach(pid):
    """The address of the library's hak_attach."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if os.path.realpath(LIBRARY) in line)
    text = subprocess.run(["nm", "-D", LIBRARY], stdout=subprocess.PIPE, text=True, check=True).stdout
    return base + int(next(line.split()[0] for line in text.splitlines() if line.endswith(" hak_attach")), 16)


def test_tool_attaches_to_a_process_without_options(_folder):
    with Program("", "idle") as program:
        program.ready()
        place = find_attach(program.pid)
        try:
            memory = os.open(f"/proc/{program.pid}/mem", os.O_RDWR)
        except PermissionError:
            raise SkipTest() from None
        magic, version, size, command, _, _ = struct.unpack("<8sIIQQQ", os.pread(memory, 40, place))
        assert magic == b"HAKATTCH" and version == 1 and size == 40 and command == 0
        os.pwrite(memory, struct.pack("<Q", 4096), place + 24)
        os.pwrite(memory, struct.pack("<Q", 2), place + 16)
        for _ in range(20):
            program.process.stdin.write("\n")
            program.process.stdin.flush()
            assert program.process.stdout.readline() == "done\n"
            command, _, answer = struct.unpack("<QQQ", os.pread(memory, 24, place + 16))
            if command == 0:
                break
            time.sleep(0.05)
        assert command == 0 and answer == 2, (command, hex(answer))
        os.close(memory)
        document = profile(f"@hakmem-{program.pid}")
        assert document["is_on"] and document["rate"] == 4096 and document["samples"]["taken"] > 0
    assert program.error == "" and program.process.returncode == 0


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
