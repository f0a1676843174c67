#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How the heap profile starts and stops: by POST, by signal, by attaching; its bound; and what is told at exit.

Usage: start_test.py PROGRAM
"""
import gzip
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from document import GUARDLESS, LIBRARY, Program, SkipTest, fetch, heap_v2, profile, run_tests


def test_rate_is_set_and_data_forgotten_by_post(_folder):
    with Program("control:@hakmem_profile.%p", "sites") as program:
        program.ready()
        name = f"@hakmem_profile.{program.pid}"
        empty = profile(name)
        assert not empty["is_on"] and empty["sites"] == [] and empty["samples"]["own_bytes"] == 0
        assert fetch(name, "/leaks.txt")[0] == 200
        assert gzip.decompress(fetch(name, "/heap.pb.gz")[1])
        for query in ("", "?", "?rate", "?rate=", "?rate=x", "?rate=2t", "?speed=3", "?rate=1k&x"):
            assert fetch(name, "/profile" + query, "POST", refused=True)[0] == 400, query
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
    with Program(GUARDLESS + "profile_rate:64k,control:@hakmem_profile.%p", "sites") as program:
        program.ready()
        name = f"@hakmem_profile.{program.pid}"
        for rate in ("4k", "512k"):
            assert fetch(name, "/profile?rate=" + rate, "POST")[0] == 200
            program.process.stdin.write("\n")
            program.process.stdin.flush()
            assert program.process.stdout.readline() == "done\n"
        assert fetch(name, "/profile?rate=0", "POST")[0] == 200
        document = profile(name)
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


def attach(program):
    """A tool's request to sample, and input until it is answered."""
    place = find_attach(program.pid)
    try:
        memory = os.open(f"/proc/{program.pid}/mem", os.O_RDWR)
    except PermissionError:
        raise SkipTest("the memory of another process cannot be written here") from None
    magic, version, size, _, _, number, answer = struct.unpack("<8sIIQQQQ", os.pread(memory, 48, place))
    assert magic == b"HAKATTCH" and version == 2 and size == 48 and number == 0
    os.pwrite(memory, struct.pack("<QQQ", 2, 4096, 1), place + 16)
    answered = 0
    while answered != 1:
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        assert program.process.stdout.readline() == "done\n"
        result, answered = struct.unpack("<QQ", os.pread(memory, 16, answer))
        time.sleep(0.05)
    assert result == 2, hex(result)
    os.close(memory)
    document = profile(f"@hakmem-{program.pid}")
    assert document["is_on"] and document["rate"] == 4096 and document["samples"]["taken"] > 0


def test_tool_attaches_to_a_process_without_options(_folder):
    with Program("", "idle") as program:
        program.ready()
        attach(program)
    assert program.error == "" and program.process.returncode == 0


def test_tool_attaches_while_the_main_thread_sleeps(_folder):
    with Program("", "apart") as program:
        program.ready()
        attach(program)
    assert program.error == "" and program.process.returncode == 0 and program.out == "flushed\n"


def test_process_that_was_attached_to_ends_as_usual_when_its_main_thread_leaves(_folder):
    """The last thread runs the exit handlers: the channel's must not be it."""
    with Program("", "leave") as program:
        program.ready()
        attach(program)
    assert program.error == "" and program.process.returncode == 0 and program.out == "flushed\n"


def test_hardened_program_cannot_write_the_request_of_a_tool(_folder):
    """A debugger can, as the test before shows; an attacker who writes to the program's memory cannot."""
    if os.environ["HAKMEM_FLAVOUR"] != "hardened":
        raise SkipTest("only the hardened library protects the request")
    with Program("", "idle") as program:
        program.ready()
        place = find_attach(program.pid)
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
            ranges = [(*(int(word, 16) for word in line.split()[0].split("-")), line.split()[1]) for line in maps]
    assert [rights for begin, end, rights in ranges if begin <= place < end] == ["r--p"]


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
