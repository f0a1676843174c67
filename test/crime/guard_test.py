#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every crime with a watched block is told with all stacks, and ends by the signal it would end by.

Usage: guard_test.py PROGRAM EXPECTED.tsv
A row of the table is: crime <tab> signal <tab> first line <tab> who did what, in the order it is told,
or "backtrace", where the line is followed by a stack alone <tab> number of threads among those.
ADDRESS in the line stands for any address. The program is built with frame pointers, so each stack
must begin in it. Crimes without a row fail the test.
"""
import os
import re
import resource
import signal
import subprocess
import sys

DEED = re.compile(r"hakmem:   (\w+) by thread (\d+):")
FRAME = re.compile(r"hakmem:     #(\d+) 0x[0-9a-f]+ (\S+)\+0x[0-9a-f]+")


def read_table(path):
    table = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                crime, *rest = line.rstrip("\n").split("\t")
                table[crime] = rest
    return table


def commit(program, crime, library):
    environment = dict(os.environ, LD_PRELOAD=library, HAKMEM_OPTIONS="guard_rate:1,backtrace:1")
    return subprocess.run([program, crime], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))


def judge_stacks(program, lines, deeds, threads):
    """What was wrong with the lines after the first, or None."""
    told, ids, frames = [], set(), []
    if deeds == ["backtrace"]:  # the stack alone
        told, frames = list(deeds), [[]]
    for line in lines:
        deed, frame = DEED.fullmatch(line), FRAME.fullmatch(line)
        if deed:
            told.append(deed[1])
            ids.add(deed[2])
            frames.append([])
        elif frame and frames and int(frame[1]) == len(frames[-1]):
            frames[-1].append(frame[2])
        else:
            return f"a line of another form: {line!r}"
    if told != deeds:
        return f"told {told}, not {deeds}"
    if len(ids) != threads:
        return f"{len(ids)} threads, not {threads}"
    for deed, modules in zip(told, frames):
        if not modules or not os.path.samefile(modules[0], program):
            return f"the stack of '{deed}' begins elsewhere: {modules}"
    return None


def judge(program, crime, row, library):
    """What was wrong, or None."""
    name, text, deeds, threads = row
    result = commit(program, crime, library)
    if result.returncode != -getattr(signal, name):
        return f"ended with {result.returncode}, not by {name}; {result.stdout}{result.stderr}"
    first, *rest = result.stderr.splitlines() or [""]
    pattern = re.escape(text.rstrip(")")).replace("ADDRESS", "0x[0-9a-f]+")
    if not re.fullmatch(pattern + r"((; | \()[^()]*thread [0-9]+)?\)?", first):
        return f"said {first!r}, not {text!r}"
    wrong = judge_stacks(program, rest, deeds.split(), int(threads))
    return wrong and f"{wrong}\n{result.stderr}"


def main():
    program, table_path = sys.argv[1:]
    library = os.environ["HAKMEM_LIB"]
    table = read_table(table_path)
    names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    failures = [f"{crime}: no such crime" for crime in table if crime not in names]
    for crime in names:
        if crime not in table:
            failures.append(f"{crime}: not in {os.path.basename(table_path)}")
            continue
        wrong = judge(program, crime, table[crime], library)
        if wrong:
            failures.append(f"{crime}: {wrong}")
    print("\n".join(failures))
    print(f"{len(names)} crimes committed, {len(failures)} mistakes")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
