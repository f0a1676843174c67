#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same crimes with blocks that the heap profiler samples, all of them but for very few: each ends as without.

Usage: sampled_test.py PROGRAM TABLE
"""
import sys

import crime_test
import crimes

# What differs: the line, or None where nothing is noticed.
DIFFERENT = {
    # the end of the process looks at the thread's bins, where no sampled block comes
    "write_after_free_seen_at_exit": None,
    # each free of a sampled block reads its slab's record
    "double_free_interleaved_taken_again": "hakmem: double free: ADDRESS",
}
# Fatal either way; the line depends on whether the only block of its class was the last of its slab, which is gone then.
EITHER = {"free_again_of_uncarved_remote": "hakmem: double free, or free of an address inside a block: ADDRESS"}


def judge(crime, row):
    text = DIFFERENT.get(crime, crime_test.line_of(row))
    if text is None or crime_test.line_of(row) is None:
        return crimes.ELSEWHERE
    program = sys.argv[1]
    for words in ([crime], [crime, "used"]):
        found = crime_test.judge_one(program, (), words, text)
        if found and crime in EITHER:
            found = crime_test.judge_one(program, (), words, EITHER[crime])
        if found:
            return found
    return None


if __name__ == "__main__":
    crimes.ORDINARY += ",profile_rate:1"
    sys.exit(crimes.run(sys.argv[1], sys.argv[2], judge))
