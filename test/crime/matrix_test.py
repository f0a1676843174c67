#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every cell of the table of crimes ends in one line on standard error and SIGABRT.

Usage: matrix_test.py PROGRAM
"""
import concurrent.futures
import os
import re
import signal
import sys

import crimes

# What may be said about each kind; the rest of the line tells about the block.
TEXTS = {
    "free_twice": "double free|double free, or [a-z ]+|free of an address that no allocator [a-z ]+",
    "free_inside": "free of an address inside a block|double free, or free of an address [a-z ]+",
    "realloc": "realloc of a freed block|realloc of an address that no allocator here handed out",
    "write_after_free": "double free, or a write to a freed block",
    "clear_after_free": "double free, or a write to a freed block",
    "sized": "sized free with a size that is not the block's",
}

def text_of(kind):
    return next(text for start, text in TEXTS.items() if kind.startswith(start))


def judge(cell):
    """What was wrong with a cell, or None."""
    program, cell = cell
    kind = cell.split()[0]
    done = crimes.commit(program, cell.split(), crimes.ORDINARY)
    is_hardened = os.environ["HAKMEM_FLAVOUR"] == "hardened"
    if is_hardened and kind == "free_twice_written" and done.returncode == -signal.SIGSEGV:
        return None  # the write to the freed block: it is inaccessible
    if done.returncode != -signal.SIGABRT:
        return f"{cell}: ended with {done.returncode}; {done.stdout}{done.stderr}".strip()
    if not re.fullmatch(rf"hakmem: ({text_of(kind)})[^:]*: 0x[0-9a-f]+.*\n", done.stderr):
        return f"{cell}: said {done.stderr!r}"
    return None


def main():
    program = sys.argv[1]
    cells = crimes.names_of(program)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        mistakes = list(filter(None, pool.map(judge, [(program, cell) for cell in cells])))
    return crimes.finish(len(cells), mistakes)


if __name__ == "__main__":
    sys.exit(main())
