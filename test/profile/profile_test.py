#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The heap profile of a program with a known load: do the figures agree with it, and the forms with each other?

Usage: profile_test.py PROGRAM
"""
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from document import (GUARDLESS, LIBRARY, Program, SkipTest, by_function, heap_v2, names_of, near, pprof, profile,
                      run_tests)


def test_estimates_agree_with_the_load_and_the_heap(_folder):
    with Program(GUARDLESS + "profile_rate:16k", "sites") as program:
        program.ready()
        document = profile(program)
    assert document["is_on"] and document["is_whole"] and document["rate"] == 16 << 10
    assert document["pid"] == program.pid and document["program"] == os.path.basename(sys.argv[1])
    assert document["samples"]["dropped"] == 0
    near(document["estimate"]["live_bytes"], document["exact"]["live_bytes"], document["estimate"]["sigma_bytes"])
    assert abs(sum(s["inuse"]["bytes"] for s in document["sites"]) - document["estimate"]["live_bytes"]) < 1000
    assert sum(s["inuse"]["samples"] for s in document["sites"]) == document["samples"]["live"]
    many = by_function(document, sys.argv[1], "site_many")
    few = by_function(document, sys.argv[1], "site_few")
    gone = by_function(document, sys.argv[1], "site_gone")
    # hardened blocks have 8 bytes more: 320 + 8 is of the class of 384
    block = {320: 320, 65: 80, 240: 256, 160: 160, 200: 224}
    if os.environ["HAKMEM_FLAVOUR"] == "hardened":
        block = {320: 384, 65: 80, 240: 256, 160: 192, 200: 224}
    near(many["inuse"], 125000 * block[320], many["variance"] ** .5)
    near(many["objects"], 125000, many["variance"] ** .5 / block[320])
    near(few["inuse"], 31250 * (block[65] + block[240]) + 20000 * block[160], few["variance"] ** .5)
    assert gone["inuse"] == 0 and gone["alloc"] > 15e6
    assert few["requested"] < few["inuse"] * 0.96 and many["requested"] <= many["inuse"]
    assert document["peak"]["live_bytes"] >= document["estimate"]["live_bytes"] - 1
    for site, names in zip(document["sites"], names_of(document, sys.argv[1])):
        if "site_many" in names:
            assert "main" in names and site["lifetimes_ns"]["censored"] == site["inuse"]["samples"]
            assert {thread["tid"] for thread in site["threads"]} == {program.pid}
        if "site_few" in names and "thread_sites" in names:
            assert {thread["tid"] for thread in site["threads"]} - {program.pid}
    ours = next(m for m in document["mappings"] if "libhakmem" in m["path"])
    notes = subprocess.run(["readelf", "-n", ours["path"]], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert ours["build_id"] == re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def test_large_blocks_are_followed_through_realloc(_folder):
    with Program("profile_rate:16k", "large") as program:
        program.ready()
        document = profile(program)
    large = [site for site in document["sites"] if site["inuse"]["bytes"] > 40e6]
    assert len(large) == 1 and large[0]["inuse"]["samples"] == 20
    assert 60e6 <= large[0]["requested_bytes"] < 60.1e6
    assert by_function(document, sys.argv[1], "site_few")["inuse"] == 0


def test_survivors_in_sparse_slabs_pin_memory(_folder):
    with Program(GUARDLESS + "retain_idle:1g,profile_rate:2k", "pinned") as program:
        program.ready()
        document = profile(program)
    few = by_function(document, sys.argv[1], "site_few")
    dense = by_function(document, sys.argv[1], "site_gone")
    assert few["pinned"] > 5 * few["inuse"], few
    assert dense["pinned"] < dense["inuse"], dense


def test_lifetimes_of_freed_blocks(_folder):
    with Program(GUARDLESS + "profile_rate:4k", "lifetimes") as program:
        program.ready()
        document = profile(program)
    for site, names in zip(document["sites"], names_of(document, sys.argv[1])):
        if "site_many" in names and site["lifetimes_ns"]["freed"] > 100:
            assert 40e6 < site["lifetimes_ns"]["p50"], site["lifetimes_ns"]
            assert site["lifetimes_ns"]["temporary"] * 20 < site["lifetimes_ns"]["freed"], site["lifetimes_ns"]
        if "site_few" in names and site["lifetimes_ns"]["freed"] > 100:
            assert site["lifetimes_ns"]["p50"] < 20e6, site["lifetimes_ns"]
            assert site["lifetimes_ns"]["temporary"] == site["lifetimes_ns"]["freed"], site["lifetimes_ns"]


# --- formats ----------------------------------------------------------------------------------------------------------


def fields(data):
    """Fields of a protocol buffer's message: (number, value)."""
    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at
    at = 0
    while at < len(data):
        key, at = varint(at)
        value, at = varint(at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        yield key >> 3, value
    assert at == len(data)


def numbers(data):
    """Packed varints."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def test_formats_agree(folder):
    with Program(GUARDLESS + "profile_rate:16k", "sites") as program:
        program.ready()
        document, packed = profile(program), pprof(program)
    text = heap_v2(document)
    message = list(fields(gzip.decompress(packed)))  # checks length and sum
    strings = [value.decode() for number, value in message if number == 6]
    types = [dict(fields(value)) for number, value in message if number == 1]
    assert [strings[t[1]] for t in types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    assert [strings[t[2]] for t in types] == ["count", "bytes", "count", "bytes"]
    values = [numbers(dict(fields(value))[2]) for number, value in message if number == 2]
    expected = [[site["alloc"]["objects"], site["alloc"]["bytes"], site["inuse"]["objects"], site["inuse"]["bytes"]]
                for site in document["sites"]]
    assert sorted(values) == sorted(expected)
    locations = {dict(fields(value))[1]: dict(fields(value)) for number, value in message if number == 4}
    stacks = [[locations[i][3] + 1 for i in numbers(dict(fields(value)).get(1, b""))]
              for number, value in message if number == 2]
    assert sorted(stacks) == sorted([int(a, 16) for a in site["stack"]] for site in document["sites"])
    maps = [dict(fields(value)) for number, value in message if number == 3]
    assert {strings[m[5]] for m in maps} == {m["path"] for m in document["mappings"]}
    assert {strings[m[6]] for m in maps} == {m["build_id"] for m in document["mappings"]}
    assert dict(message)[12] == 16 << 10 and strings[dict(message)[14]] == "inuse_space"
    lines = text.split("\n\nMAPPED_LIBRARIES:\n")[0].splitlines()
    assert lines[0] == "heap_v2/1"
    sums = [tuple(map(int, re.fullmatch(r"  t\*: (\d+): (\d+) \[(\d+): (\d+)\]", line).groups()))
            for line in lines if line.startswith("  t*")]
    for whole, parts in zip(sums[0], zip(*sums[1:])):
        assert abs(whole - sum(parts)) <= len(parts)  # each is rounded
    assert sorted(sums[1:]) == sorted((s["inuse"]["objects"], s["inuse"]["bytes"], s["alloc"]["objects"],
                                       s["alloc"]["bytes"]) for s in document["sites"])
    if shutil.which("go"):
        path = folder + "/heap.pb.gz"
        with open(path, "wb") as file:
            file.write(packed)
        top = subprocess.run(["go", "tool", "pprof", "-top", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, check=False, env=dict(os.environ, PPROF_TMPDIR=folder))
        assert top.returncode == 0 and "site_many" in top.stdout, top.stdout + top.stderr


# Of the system, so built without frame pointers; what each allocates is for its own stacks.
OF_THE_SYSTEM = (
    ("/usr/bin/perl", "-e", "my %h; $h{$_} = 'x' x ($_ % 900) for 1..20000; my @s = sort { $h{$a} cmp $h{$b} } keys %h;"),
    ("/usr/bin/python3", "-c", "import json\nx = [json.loads('[[1, 2], {\"a\": [3, 4]}]') for _ in range(9000)]"),
    ("/usr/bin/sqlite3", ":memory:", "CREATE TABLE t(a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) "
     "INSERT INTO t SELECT i, hex(randomblob(200)) FROM n; SELECT count(DISTINCT b) FROM t;"),
)


def start_of(path):
    """Where in the file the first instruction of a program is."""
    with open(path, "rb") as file:
        data = file.read()
    entry, headers = struct.unpack_from("<QQ", data, 24)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(headers, headers + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1 and address <= entry < address + length:
            return entry - address + offset
    raise ValueError(path)


def test_stacks_of_programs_without_frame_pointers_reach_their_start(folder):
    ran = 0
    for words in OF_THE_SYSTEM:
        if not os.path.exists(words[0]):
            continue
        options = f"{GUARDLESS}profile_rate:4k,report:profile,report_file:{folder}/{ran}"
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS=options, PYTHONMALLOC="malloc"))
        with open(f"{folder}/{ran}", encoding="utf-8") as file:
            document = json.load(file)
        path = os.path.realpath(words[0])
        start, whole, reach = start_of(path), 0, 0
        for site in document["sites"]:
            last = int(site["stack"][-1], 16)
            at = next((last - int(one["start"], 16) + int(one["offset"], 16) for one in document["mappings"]
                       if one["path"] == path and int(one["start"], 16) <= last < int(one["end"], 16)), -1)
            whole += site["alloc"]["samples"]
            # or as long as a stack can be
            reach += site["alloc"]["samples"] * (start <= at < start + 64 or len(site["stack"]) == 64)
        print(f"{path}: {reach} of {whole} stacks reach its start")
        assert whole > 300 and reach >= 0.9 * whole, (path, reach, whole)
        ran += 1
    if ran == 0:
        raise SkipTest("none of the programs is installed: " + ", ".join(words[0] for words in OF_THE_SYSTEM))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
