#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the protocol of docs/remote-free.md: every scenario in every execution, and every mutation.

The sources are those of src/, compiled against a double of src/base/atomics.h, after a few changes of
their text: numbers that make the world small, probes for what must be seen to happen, and one
mutation at a time. Text that is no longer there is an error, so what is said here stays true.

    check.py --src SRC --build FOLDER [--cc CC] [--jobs N] [--docs FILE] [NAME...]

NAMEs are scenarios, mutations, or a word for all of a kind: `scenarios`, `every` for the long ones, whose names end in
it, and `mutations`. None means all.
"""
import argparse
import concurrent.futures
import os
import shlex
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mutations import MUTATIONS  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-std=gnu17", "-g", "-Wall", "-Wextra", "-Wno-ignored-qualifiers", "-Wno-missing-field-initializers",
         "-D_GNU_SOURCE"]

# Loops that only wait, and bounds on work, as short as they can be.
SMALL = [
    ("slab/owner.c", "OWNER_SPINS = 100", "OWNER_SPINS = 1"),
    ("slab/owner.c", "OWNER_DRAIN_BUDGET = 256", "OWNER_DRAIN_BUDGET = 1"),
    ("slab/owner.c", "ADOPT_LOOKS = 64", "ADOPT_LOOKS = 3"),
    ("slab/owner.c", "ADOPT_DRAIN_BUDGET = 32", "ADOPT_DRAIN_BUDGET = 1"),
    ("os/lock.c", "LOCK_SPINS = 100", "LOCK_SPINS = 1"),
    ("os/lock.c", "FORK_NAPS = 10000,", "FORK_NAPS = 3,"),
    ("os/lock.c", "FORK_HANDLER_NAPS = 100,", "FORK_HANDLER_NAPS = 1,"),
]
PROBES = [
    ("slab/remote.c", "    if (before == 0) {\n",
     "    model_reach(before == 0 ? MARK_FIRST : MARK_MORE);\n    if (before == 0) {\n"),
    ("slab/remote.c", "            queue_push(now, slab);",
     "            model_reach(MARK_FORWARD);\n            queue_push(now, slab);"),
    ("slab/remote.c", "    hak_slab_count_free(owner, slab, (uint32_t)count, slab->base);\n",
     "    hak_popcount(slab->bits[0]) > slab->free_count + count ? model_reach(MARK_EARLY) : (void)0;\n"
     "    hak_slab_count_free(owner, slab, (uint32_t)count, slab->base);\n"),
    ("slab/slab.c", "    hak_store_release(&slab->owner, owner); /* pairs REMOTE-3 */\n",
     "    model_reach(MARK_ADOPT);\n    hak_store_release(&slab->owner, owner); /* pairs REMOTE-3 */\n"),
    ("front/flush.c", "            /* the owner's lock orders",
     "            model_reach(MARK_OWN);\n            /* the owner's lock orders"),
]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Failed(Exception):
    pass


def patched(src, changes):
    """File name -> text, after the changes (file, old, new)."""
    texts = {}
    for file, old, new in changes:
        text = texts.get(file) or read(os.path.join(src, file))
        if text.count(old) != 1:
            raise Failed(f"{file} has this {text.count(old)} times, not once:\n{old}")
        texts[file] = text.replace(old, new)
    return texts


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return result.returncode, result.stdout


def compile_model(options, name, changes):
    """Builds the model with the changes; returns the program."""
    folder = os.path.join(options.build, name)
    overlay = os.path.join(folder, "src")
    for file, text in patched(options.src, SMALL + PROBES + changes).items():
        path = os.path.join(overlay, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    program = os.path.join(folder, "model")
    includes = ["-I" + one for one in (os.path.join(HERE, "double"), HERE, overlay, options.src)]
    objects = []
    for file, more in (("explore.c", ["-O2"]), ("memory.c", ["-O2"]), ("plain.c", ["-O2"]), ("main.c", []),
                       ("ghost.c", ["-O1", "-DHAK_AUDIT=1"]),
                       ("world.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("scenario.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("locks.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("fork.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("platform.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("units.c", ["-O1", "-fsanitize=thread", "-DHAK_AUDIT=1"]),
                       ("litmus.c", ["-O1", "-fsanitize=thread"])):
        objects.append(os.path.join(folder, file + ".o"))
        status, output = run(options.cc + FLAGS + more + includes +
                             ["-c", os.path.join(HERE, file), "-o", objects[-1]])
        if status != 0:
            raise Failed(f"{file} does not compile:\n{output}")
    status, output = run(options.cc + objects + ["-o", program])
    if status != 0:
        raise Failed(f"the program does not link:\n{output}")
    return program


def check_scenario(program, name):
    start = time.monotonic()
    status, output = run([program, name])
    if name.startswith("litmus_race_"):
        if status != 1 or not output.startswith("FAILED: race: "):
            raise Failed(f"no race was found: {output}")
        return "found"
    if status != 0:
        raise Failed(output)
    return f"{output.strip()}, {time.monotonic() - start:.1f} s"


def check_mutation(options, mutation):
    """It must be found, by one of the failures that it is said to cause."""
    program = compile_model(options, mutation.name, mutation.changes)
    status, output = run([program, mutation.scenario])
    if status == 0:
        raise Failed(f"not found by {mutation.scenario}: {output}")
    failure = output.splitlines()[0] if output else f"status {status}"
    if status != 1 or not any(words in failure for words in mutation.expected):
        raise Failed(f"another failure than expected: {failure}\n{output[-4000:]}")
    return f"found by {mutation.scenario}: {failure}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", type=shlex.split, default=["cc"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--docs", help="must name every mutation and scenario")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    program = compile_model(options, "unchanged", [])
    scenarios = run([program])[1].split()
    kinds = {"scenarios", "every", "mutations"}
    names = set(options.names or kinds)
    chosen = [one for one in scenarios if names & {one, "every" if one.endswith("_every") else "scenarios"}]
    mutations = [one for one in MUTATIONS if names & {one.name, "mutations"}]
    known = {*kinds, *scenarios, *(one.name for one in MUTATIONS)}
    if names - known:
        parser.error(f"no such scenario or mutation: {' '.join(sorted(names - known))}")
    failed = 0
    if options.docs:
        text = read(options.docs)
        for name in sorted(known - kinds):
            if not name.startswith("litmus_") and f"`{name}`" not in text:
                failed += 1
                print(f"FAILED  {options.docs} does not name `{name}`")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(name, pool.submit(check_scenario, program, name)) for name in chosen]
        jobs += [(one.name, pool.submit(check_mutation, options, one)) for one in mutations]
        for name, job in jobs:
            try:
                print(f"ok      {name}: {job.result()}", flush=True)
            except Failed as failure:
                failed += 1
                print(f"FAILED  {name}: {failure}", flush=True)
    print(f"{len(jobs)} run, {failed} failures")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
