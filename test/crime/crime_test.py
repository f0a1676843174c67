#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every crime ends in exactly one line on standard error and SIGABRT, on a fresh heap and on a used one.

Usage: crime_test.py PROGRAM EXPECTED.tsv [EMULATOR ...]
A row of the table is: crime <tab> line <tab> flavours that detect it, or "all": all that have no line of their
own, which follow in the same way. ADDRESS in the line stands for any address; the line SIGSEGV for that signal and
no line, SIGSEGV and a line for both and a stack. Flavour "tags": the hardened library where there are memory tags;
the others shall do without.
"""
import os
import re
import signal
import sys
from functools import partial

import crimes

HINT = "hakmem:   functions and lines of this report: hakmem symbolize FILE (in a clone ./hakmem)\n"


def pattern(text, advice):
    line = re.escape(text).replace("ADDRESS", "0x[0-9a-f]+")
    return line + (rf" \([^\n]+; {advice}\)\n" if advice else r"( \([^\n]*\))?\n")


def line_of(row):
    """What this flavour says, or None."""
    lines = {flavour: text for text, flavours in zip(row[::2], row[1::2]) for flavour in flavours.split()}
    return lines.get(os.environ["HAKMEM_FLAVOUR"], lines.get("all"))


def judge(program, emulator, crime, row):
    """What was wrong, or None."""
    text = line_of(row)
    if text is None:
        return crimes.ELSEWHERE
    fresh = judge_one(program, emulator, [crime], text)
    used = fresh or judge_one(program, emulator, [crime, "used"], text)
    return fresh or (used and f"on a used heap: {used}")


def judge_one(program, emulator, words, text):
    options = crimes.TAGGED if os.environ["HAKMEM_FLAVOUR"] == "tags" else crimes.ORDINARY  # guard_test.py has the others
    result = crimes.commit(program, words, options, emulator=emulator)
    expected, name = pattern(text, crimes.advice(text)), "SIGABRT"
    if text.startswith("SIGSEGV"):
        name, text = "SIGSEGV", text.removeprefix("SIGSEGV").lstrip()
        expected = text and pattern(text, "") + r"hakmem:   accessed by thread \d+:\n(hakmem:     #.*\n)*" + re.escape(HINT)
    if result.returncode != -getattr(signal, name):
        return f"ended with {result.returncode}, not by {name}; {result.stdout}{result.stderr}"
    if not re.fullmatch(expected, result.stderr):
        return f"said {result.stderr!r}, not {text!r}"
    return None


def main():
    program, table, *emulator = sys.argv[1:]
    return crimes.run(program, table, partial(judge, program, emulator), emulator)


if __name__ == "__main__":
    sys.exit(main())
