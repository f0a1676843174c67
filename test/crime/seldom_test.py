#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""By default 1 process in 16 has a guarded block at its start, and extra ones later, so that of many short ones with few allocations
some notice an error that they make again and again; with a rate that was chosen, or 0, none does.

Usage: seldom_test.py PROGRAM
"""
import concurrent.futures
import signal
import sys

import crimes

# 32 of them watch a block, and 24 or more are expected to notice it; 2 by the rate alone.
PROCESSES, ENOUGH, AT_ONCE = 512, 6, 32


def is_noticed(found):
    return found.returncode == -signal.SIGSEGV and found.stderr.startswith("hakmem: use after free: 0x")


def noticed_by_default(program):
    """How many processes notice it, counted until there are enough."""
    count = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(0, PROCESSES, AT_ONCE):
            runs = [pool.submit(crimes.commit, program, ["read_after_free_for_a_quarter_second"], "backtrace:0")
                    for _ in range(AT_ONCE)]
            count += sum(is_noticed(run.result()) for run in runs)
            if count >= ENOUGH:
                break
    return count


def mistakes(program):
    count = noticed_by_default(program)
    if count < ENOUGH:
        yield f"by default: {count} of {PROCESSES} processes noticed it"
    for options in ("guard_rate:0", "guard_rate:1073741824", "guard:0"):
        found = crimes.commit(program, ["read_after_free_for_a_second"], options)
        if (found.returncode, found.stdout, found.stderr) != (3, "unnoticed\n", ""):
            yield f"{options}: ended with {found.returncode} and said {found.stderr[:200]!r}"


if __name__ == "__main__":
    sys.exit(crimes.finish(4, list(mistakes(sys.argv[1]))))
