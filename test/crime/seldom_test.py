#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""By default an error that a program with few allocations makes again and again is noticed before long, where guarded
blocks have a region; with a rate that was chosen, or 0, it is not.

Usage: seldom_test.py PROGRAM
"""
import signal
import sys

import crimes


def mistakes(program):
    found = crimes.commit(program, ["read_after_free_for_50_seconds"], "backtrace:0")
    if found.returncode != -signal.SIGSEGV or not found.stderr.startswith("hakmem: use after free: 0x"):
        yield f"by default: ended with {found.returncode} and said {found.stderr[:200]!r}"
    for options in ("guard_rate:0", "guard_rate:1073741824", "guard:0"):
        found = crimes.commit(program, ["read_after_free_for_a_second"], options)
        if (found.returncode, found.stdout, found.stderr) != (3, "unnoticed\n", ""):
            yield f"{options}: ended with {found.returncode} and said {found.stderr[:200]!r}"


if __name__ == "__main__":
    sys.exit(crimes.finish(4, list(mistakes(sys.argv[1]))))
