#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every attack ends as the table promises, on a used heap and on a fresh one.

Usage: attack_test.py PROGRAM EXPECTED.tsv
A row of the table is: outcome with the default library <tab> outcome with the hardened one <tab>
attacks; the outcome is the worst that may come of it. "succeeded" promises nothing. The hardened
library leaves some to chance: of five runs most must keep the promise.
"""
import os
import resource
import subprocess
import sys

RUNS = 5
BETTER = ("succeeded", "harmless", "stopped")  # each better than the one before


def outcome(program, attack, words):
    result = subprocess.run([program, attack, *words], env=dict(os.environ, LD_PRELOAD=os.environ["HAKMEM_LIB"]),
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False)
    if result.returncode < 0:
        return "stopped"
    return result.stdout.strip().rpartition("\n")[2] if result.returncode == 0 else f"status {result.returncode}"


def read_table(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line[0] not in "#\n"]
    return {name: outcomes for *outcomes, names in rows for name in names.split()}


def is_kept(promised, found):
    return found in BETTER and BETTER.index(found) >= BETTER.index(promised)


def judge(program, attack, promised):
    """What was wrong, or None. One run is enough if it ends as promised."""
    for words in (["warm"], []):
        found = [outcome(program, attack, words)]
        if not is_kept(promised, found[0]):
            found += [outcome(program, attack, words) for _ in range(RUNS - 1)]
        if sum(is_kept(promised, one) for one in found) * 2 <= len(found):
            return f"{' '.join(words) or 'fresh'} heap: {' '.join(found)}, promised {promised}"
    return None


def main():
    program, path = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    column = os.environ["HAKMEM_FLAVOUR"] == "hardened"
    lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    names, table = [line.split("\t")[1] for line in lines], read_table(path)
    wrong = [f"{name}: not in the table" for name in names if name not in table]
    wrong += [f"{name}: no such attack" for name in table if name not in names]
    for name in names:
        if name in table:
            mistake = judge(program, name, table[name][column])
            wrong += [f"{name}: {mistake}"] if mistake else []
    print("\n".join(wrong))
    print(f"{len(names)} attacks, {len(wrong)} broken promises")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
