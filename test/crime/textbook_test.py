#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""With profile debug every error of textbooks is told and ends the program, every time.

Usage: textbook_test.py PROGRAM EXPECTED.tsv
A row of the table is: crime <tab> how the first line on standard error begins.
"""
import os
import sys

import crimes

TIMES = 10


def judge_of(program):
    def judge(crime, row):
        """What was wrong, or None."""
        for number in range(TIMES):
            result = crimes.commit(program, [crime], "")
            first = (result.stderr.splitlines() or [""])[0]
            if result.returncode >= 0 or not first.startswith(f"hakmem: {row[0]}"):
                return f"time {number + 1}: ended with {result.returncode} and said {first!r}, not {row[0]!r}"
        return None
    return judge


if __name__ == "__main__":
    os.environ["HAKMEM_PROFILE"] = "debug"
    sys.exit(crimes.run(sys.argv[1], sys.argv[2], judge_of(sys.argv[1])))
