#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a listener of the probes sees of a known load: gdb counts their semaphores up and stops at them, as a tracer does.

Usage: probe_test.py PROGRAM
"""
import math
import os
import re
import shutil
import subprocess
import sys

from document import GUARDLESS, LIBRARY, SkipTest, run_tests

# Breakpoints at the probes of the library, which is there once main begins. What the program prints would come in the
# middle of a debugger's line.
STEPS = """set confirm off
set pagination off
set startup-with-shell off
set inferior-tty /dev/null
set environment LD_PRELOAD {library}
set environment HAKMEM_OPTIONS {options}
break main
run {load}
delete
break -probe-stap otel_memory:alloc
commands
silent
printf "event alloc %lx %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "event free %lx\\n", $_probe_arg0
continue
end
continue
"""


def events(folder, options, load="sites"):
    """("alloc", address, size, weighted bytes) and ("free", address), as they came."""
    if shutil.which("gdb") is None:
        raise SkipTest("gdb is not installed")
    steps = folder + "/steps"
    with open(steps, "w", encoding="utf-8") as file:
        file.write(STEPS.format(library=LIBRARY, options=options, load=load))
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", steps, sys.argv[1]], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, DEBUGINFOD_URLS=""))
    if "ptrace: Operation not permitted" in done.stdout:
        raise SkipTest("a debugger is not permitted here")
    assert "exited normally]" in done.stdout, done.stdout[-2000:]
    found = [(kind, int(address, 16), *map(int, rest.split())) for kind, address, rest in
             re.findall(r"^event (alloc|free) ([0-9a-f]+)((?: \d+)*)$", done.stdout, re.M)]
    assert len(found) == done.stdout.count("event ")
    return found


def followed(found, rate):
    """Sizes and weights of all that was allocated and of what is in use at the end, each as the contract has it."""
    allocated, live = [], {}
    for event in found:
        if event[0] == "alloc":
            _, address, size, weighted = event
            assert abs(weighted - size / -math.expm1(-size / rate)) <= 1, event
            assert address not in live, event
            live[address] = (size, weighted)
            allocated.append((size, weighted))
        else:
            assert event[1] in live, event  # told, and once
            del live[event[1]]
    return allocated, list(live.values())


def near(rows, truth):
    """The sum of weights, within six of its standard errors: the sample is another one each time."""
    total, variance = sum(weighted for _, weighted in rows), sum(weighted * (weighted - size) for size, weighted in rows)
    print(f"{total / 1e6:.1f} MB +- {variance ** .5 / 1e6:.1f} from {len(rows)} events, really {truth / 1e6:.1f}")
    assert abs(total - truth) <= 6 * variance ** .5, (total, truth, variance)


def test_listener_sees_each_sampled_block_with_its_weight(folder):
    allocated, live = followed(events(folder, GUARDLESS + "profile_rate:64k"), 64 << 10)
    # by the size asked for; hardened blocks have 8 bytes more
    block = {320: 320, 65: 80, 240: 256, 160: 160, 200: 224}
    if os.environ["HAKMEM_FLAVOUR"] == "hardened":
        block = {320: 384, 65: 80, 240: 256, 160: 192, 200: 224}
    stays = 125000 * block[320] + 31250 * (block[65] + block[240]) + 20000 * block[160]
    near(allocated, stays + 125000 * block[200])
    near(live, stays)


def test_listener_alone_starts_sampling(folder):
    allocated, _ = followed(events(folder, GUARDLESS.rstrip(",")), 512 << 10)
    assert len(allocated) > 30, len(allocated)


def test_listener_is_told_of_large_blocks_that_move_and_go(folder):
    _, live = followed(events(folder, GUARDLESS + "profile_rate:64k", "moves"), 64 << 10)
    near([one for one in live if one[0] > 65536], 100 * 262144)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
