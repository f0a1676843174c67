#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every crime ends in exactly one line on standard error and SIGABRT.

Usage: crime_test.py PROGRAM EXPECTED.tsv
A row of the table is: crime <tab> line <tab> flavours that detect it, or "all". ADDRESS in the line
stands for any address; the line SIGSEGV for that signal and no line.
"""
import os
import re
import signal
import sys
from functools import partial

import crimes


def pattern(text):
    return re.escape(text).replace("ADDRESS", "0x[0-9a-f]+") + r"( \([^\n]*\))?\n"


def judge(program, crime, row):
    """What was wrong, or None."""
    text, flavours = row
    if not {os.environ["HAKMEM_FLAVOUR"], "all"} & set(flavours.split()):
        return crimes.ELSEWHERE
    result = crimes.commit(program, [crime], crimes.ORDINARY)  # guard_test.py has the others
    if text == "SIGSEGV":
        is_so = result.returncode == -signal.SIGSEGV and not result.stderr
        return None if is_so else f"ended with {result.returncode}, not by SIGSEGV; {result.stdout}{result.stderr}"
    if result.returncode != -signal.SIGABRT:
        return f"ended with {result.returncode}, not by SIGABRT; {result.stdout}{result.stderr}"
    if not re.fullmatch(pattern(text), result.stderr):
        return f"said {result.stderr!r}, not {text!r}"
    return None


if __name__ == "__main__":
    sys.exit(crimes.run(sys.argv[1], sys.argv[2], partial(judge, sys.argv[1])))
