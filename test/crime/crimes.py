# SPDX-License-Identifier: MIT
"""What the tests of crimes share: programs that commit one crime by its name, and tables of what must come of it.

A table has a row a crime: its name, then columns that the test at hand knows, separated by tabs. Crimes without a row
fail the test, and rows without a crime, so the tables stay complete.
"""
import os
import re
import resource
import subprocess

# As by default, whatever the profile says: one line, and freed huge blocks are known for a while. Each crime is one with
# an ordinary block but where a test says otherwise.
ORDINARY = "guard:0,tags:0,backtrace:0,huge_cache:32m,bin_blocks:2048"
TAGGED = "guard_rate:1073741824,backtrace:0,huge_cache:32m"  # what tags find the guard's handler tells
STACKS, EARLIER = "for stacks: HAKMEM_OPTIONS=backtrace:1", "to catch it earlier: HAKMEM_PROFILE=debug"
LATE = ("double free", "overflow of a block")  # so begin the kinds that are found long after the mistake
ELSEWHERE = object()  # what a judge returns of a crime that is not one here


def advice(text, stacks=False):
    """How the first line of a report ends if it is all there is, or has the option's stacks behind it."""
    if not text.endswith(": ADDRESS"):
        return ""  # the kinds that are no misuse
    kind = text.removeprefix("hakmem: ").removesuffix(": ADDRESS")
    return "; ".join(([] if stacks else [STACKS]) + ([EARLIER] if kind.startswith(LATE) else []))


def read_table(path):
    table = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                crime, *rest = line.rstrip("\n").split("\t")
                table[crime] = rest
    return table


def commit(program, words, options, library=None, emulator=()):
    """Runs it on the library; with "" on none but what it is linked with."""
    environment = dict(os.environ, HAKMEM_OPTIONS=options)
    library = os.environ["HAKMEM_LIB"] if library is None else library
    if emulator:  # which is no program for the library itself
        emulator = [*emulator, "-E", f"LD_PRELOAD={library}"]
    else:
        environment["LD_PRELOAD"] = library
    result = subprocess.run([*emulator, program, *words], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    result.stderr = re.sub(r"qemu: uncaught target signal .*\n", "", result.stderr)
    return result


def names_of(program, emulator=()):
    """A line each."""
    return subprocess.run([*emulator, program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def finish(committed, mistakes):
    print("\n".join(mistakes))
    print(f"{committed} crimes committed, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


def run(program, table_path, judge, emulator=()):
    """Exit status of a test, whose judge(crime, row) returns what was wrong, or None, or ELSEWHERE."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    table, names = read_table(table_path), names_of(program, emulator)
    mistakes = [f"{crime}: no such crime" for crime in table if crime not in names]
    committed = 0
    for crime in names:
        wrong = judge(crime, table[crime]) if crime in table else f"not in {os.path.basename(table_path)}"
        committed += wrong is not ELSEWHERE
        if wrong and wrong is not ELSEWHERE:
            mistakes.append(f"{crime}: {wrong}")
    return finish(committed, mistakes)
