#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every crime ends in exactly one line on standard error and SIGABRT.

Usage: crime_test.py PROGRAM EXPECTED.tsv
A row of the table is: crime <tab> line <tab> flavours that detect it, or "all". ADDRESS in the line
stands for any address; the line SIGSEGV for that signal and no line. Crimes without a row fail the test, so the table stays complete.
"""
import os
import re
import signal
import subprocess
import sys


def read_table(path):
    table = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                crime, text, flavours = line.rstrip("\n").split("\t")
                table[crime] = (text, flavours.split())
    return table


def pattern(text):
    return re.escape(text).replace("ADDRESS", "0x[0-9a-f]+") + r"( \([^\n]*\))?\n"


def commit(program, crime, library):
    # Each crime is one with an ordinary block; guard_test.py has the others.
    environment = dict(os.environ, LD_PRELOAD=library, HAKMEM_OPTIONS="guard:0")
    return subprocess.run([program, crime], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)


def judge(program, crime, text, library):
    """What was wrong, or None."""
    result = commit(program, crime, library)
    if text == "SIGSEGV":
        is_so = result.returncode == -signal.SIGSEGV and not result.stderr
        return None if is_so else f"ended with {result.returncode}, not by SIGSEGV; {result.stdout}{result.stderr}"
    if result.returncode != -signal.SIGABRT:
        return f"ended with {result.returncode}, not by SIGABRT; {result.stdout}{result.stderr}"
    if not re.fullmatch(pattern(text), result.stderr):
        return f"said {result.stderr!r}, not {text!r}"
    return None


def main():
    program, table_path = sys.argv[1:]
    library, flavour = os.environ["HAKMEM_LIB"], os.environ["HAKMEM_FLAVOUR"]
    table = read_table(table_path)
    names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    failures = [f"{crime}: no such crime" for crime in table if crime not in names]
    committed = 0
    for crime in names:
        text, flavours = table.get(crime, (None, []))
        if text is None:
            failures.append(f"{crime}: not in {os.path.basename(table_path)}")
        elif flavour in flavours or "all" in flavours:
            committed += 1
            wrong = judge(program, crime, text, library)
            if wrong:
                failures.append(f"{crime}: {wrong}")
    print("\n".join(failures))
    print(f"{committed} crimes committed, {len(failures)} mistakes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
