#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A profile that was on for a long time: is its memory bounded, and are its sums those of the program?

Usage: soak_test.py PROGRAM COUNT

Of COUNT allocations; 10⁹ are those of two weeks of a program that makes 800 a second.
"""
import os
import sys
import threading

from document import GUARDLESS, Program, by_function, near, profile, run_tests

COUNT = int(sys.argv[2])
PROFILE_BYTES = 8 << 20


def sums(program):
    """name → (blocks, blocks in use, bytes that a block takes from the heap)"""
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    found = {}
    for line in iter(program.process.stdout.readline, "end\n"):
        name, *figures = line.split()
        blocks, in_use, usable = map(int, figures)
        more = 8 if os.environ["HAKMEM_FLAVOUR"] == "hardened" else 0
        found[name] = (blocks, in_use, usable + more if usable <= 64 << 10 else -(-usable // (64 << 10)) * (64 << 10))
    return found


def ran(options):
    """Profiles of the program while it runs and at its end, and what it did."""
    with Program(GUARDLESS + options, str(COUNT)) as program:
        ended, seen = threading.Event(), []

        def look():
            while not ended.wait(5):
                seen.append(profile(program))
        looks = threading.Thread(target=look)
        looks.start()
        try:
            program.ready()
        finally:
            ended.set()
            looks.join()
        seen.append(profile(program))
        did = sums(program)
    return seen, did


def check(rate):
    seen, did = ran(f"profile_rate:{rate}")
    document, samples = seen[-1], seen[-1]["samples"]
    assert all(one["samples"]["own_bytes"] <= PROFILE_BYTES for one in seen)
    assert samples["dropped"] == 0 and document["is_whole"] and document["rate"] == rate
    # From 256 KiB on the distance between samples doubles while there are too many: up to four times the mean.
    mean = sum(blocks * size for blocks, _, size in did.values()) / samples["taken"]
    most = rate if rate < 256 << 10 else 4 * max(rate, mean)
    exact = document["exact"]["live_bytes"]
    near(document["estimate"]["live_bytes"], exact, (most * exact) ** .5)
    for name, (blocks, in_use, size) in did.items():
        found = by_function(document, sys.argv[1], name)
        near(found["inuse"], in_use * size, (most * in_use * size) ** .5)  # few samples do not know their own error
        near(found["alloc"], blocks * size, (most * blocks * size) ** .5)
        print(f"{name}: in use {found['inuse']} ± {found['variance'] ** .5:.0f}, are {in_use * size}; all {found['alloc']}, are "
              f"{blocks * size}: {found['alloc'] / (blocks * size):.5f} ± {(most / blocks / size) ** .5:.5f}")
    print(f"rate {rate}, bytes a sample {mean:.0f}: {samples}, read {len(seen)} times", flush=True)
    return samples


def test_sums_at_512k(_folder):
    check(512 << 10)


def test_sums_at_64k(_folder):
    assert check(64 << 10)["taken"] > COUNT / 500


def test_what_finds_no_room_is_counted(_folder):
    if COUNT > 10 ** 7:
        return
    seen, did = ran("profile_rate:4k,profile_bytes:256k")
    samples = seen[-1]["samples"]
    assert samples["dropped"] > 1000 and all(one["samples"]["own_bytes"] <= 256 << 10 for one in seen), samples
    whole = sum(in_use * size for _, in_use, size in did.values())
    assert 0 < seen[-1]["estimate"]["live_bytes"] < whole
    print(samples)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
