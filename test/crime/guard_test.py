#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every crime with a watched block is told with all stacks, and ends by the signal it would end by.

Usage: guard_test.py PROGRAM EXPECTED.tsv [NM]
A row of the table is: crime <tab> signal <tab> first line <tab> who did what, in the order it is told,
or "backtrace", where the line is followed by a stack alone <tab> number of threads among those.
ADDRESS in the line stands for any address. The program is built with frame pointers, so each stack
must begin in it, and have a frame of main's caller. With NM (the command nm) the program is linked with the archive:
it is not preloaded, and no frame may lie in the archive's code.
"""
import os
import re
import signal
import subprocess
import sys

import crimes

DEED = re.compile(r"hakmem:   (\w+) by thread (\d+):")
HINT = "hakmem:   functions and lines of this report: hakmem symbolize FILE (in a clone ./hakmem)"
FRAME = re.compile(r"hakmem:     #(\d+) (0x[0-9a-f]+) (\S+)\+(0x[0-9a-f]+)")


def archive_code(program, nm):
    """Where the library's code lies in a program, counted as nm and frames do."""
    lines = subprocess.run([nm, program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    places = {line.split()[-1]: int(line.split()[0], 16) for line in lines if line.endswith("_hak_text")}
    return range(places["__start_hak_text"], places["__stop_hak_text"])


def is_position_independent(program):
    with open(program, "rb") as file:
        return file.read(18)[16] == 3  # ET_DYN


class Judge:
    def __init__(self, program, nm=None):
        self.program = program
        self.options = {"library": ""} if nm else {}
        self.own = archive_code(program, nm) if nm else range(0)
        self.number = 4 if is_position_independent(program) else 2  # group of FRAME

    def frame_fault(self, frame):
        is_own = os.path.samefile(frame[3], self.program) and int(frame[self.number], 16) in self.own
        return f"a frame of the library's own: {frame[0]!r}" if is_own else None

    def stacks_fault(self, lines, deeds, threads):
        """What was wrong with the lines after the first, or None."""
        told, ids, frames = [], set(), []
        if not lines or lines.pop() != HINT:
            return "no word on symbolize at the end"
        if deeds == ["backtrace"]:  # the stack alone
            told, frames = list(deeds), [[]]
        for line in lines:
            deed, frame = DEED.fullmatch(line), FRAME.fullmatch(line)
            if deed:
                told.append(deed[1])
                ids.add(deed[2])
                frames.append([])
            elif frame and frames and int(frame[1]) == len(frames[-1]):
                frames[-1].append(frame)
            else:
                return f"a line of another form: {line!r}"
        if told != deeds:
            return f"told {told}, not {deeds}"
        if len(ids) != threads:
            return f"{len(ids)} threads, not {threads}"
        for deed, stack in zip(told, frames):
            if len(stack) < 2 or not os.path.samefile(stack[0][3], self.program):
                return f"the stack of '{deed}' begins elsewhere, or ends at once"
        return next(filter(None, (self.frame_fault(frame) for stack in frames for frame in stack)), None)

    def __call__(self, crime, row):
        """What was wrong, or None. Another word shifts what the kernel lays above the stack, which is no frame."""
        return next(filter(None, (self.fault([crime, *words], row) for words in ((), ("again",)))), None)

    def fault(self, words, row):
        name, text, deeds, threads = row
        options = "guard:0,backtrace:1" if deeds == "backtrace" else "guard_rate:1,backtrace:1"
        result = crimes.commit(self.program, words, options, **self.options)
        if result.returncode != -getattr(signal, name):
            return f"ended with {result.returncode}, not by {name}; {result.stdout}{result.stderr}"
        first, *rest = result.stderr.splitlines() or [""]
        pattern = re.escape(text.rstrip(")")).replace("ADDRESS", "0x[0-9a-f]+")
        advice = crimes.advice(text, stacks=True) if deeds == "backtrace" else ""
        if not re.fullmatch(pattern + r"((; | \()[^()]*thread [0-9]+)?" + (advice and f"; {advice}") + r"\)?", first):
            return f"said {first!r}, not {text!r}"
        wrong = self.stacks_fault(rest, deeds.split(), int(threads))
        return wrong and f"{wrong}\n{result.stderr}"


if __name__ == "__main__":
    sys.exit(crimes.run(sys.argv[1], sys.argv[2], Judge(sys.argv[1], *sys.argv[3:])))
