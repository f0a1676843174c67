#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The real-program matrix: each program without and with the library, compared byte for byte.

    matrix.py list [--ctest]              the programs, their labels and what they need
    matrix.py missing [NAME…]             Debian's packages that are missing
    matrix.py setup [NAME…]               install them (apt-get, as root)
    matrix.py run NAME… [--lib PATH]      run programs; PATH defaults to $HAKMEM_LIB
    matrix.py run NAME… --guarded         every process watches many of its blocks

Exit status: 0 all identical, 1 a difference, 2 wrong use, 77 skipped (the line says why).
Nothing but the standard library of Debian's Python is needed.
"""

import argparse
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays clean
sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs  # noqa: E402,F401  (fills the registry)
from rig import packages, pair, registry  # noqa: E402

PASS, FAIL, USAGE, SKIP = 0, 1, 2, 77


def main():
    options = parse(sys.argv[1:])
    chosen = select(options.names)
    if options.action == "list":
        return show(chosen, options.ctest)
    if options.action == "missing":
        return missing(chosen)
    return setup(chosen) if options.action == "setup" else run(chosen, options)


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="show the programs")
    listing.add_argument("--ctest", action="store_true", help="name, timeout, labels; a line each")
    lacking = actions.add_parser("missing", help="show what is missing")
    installing = actions.add_parser("setup", help="install what is missing")
    running = actions.add_parser("run", help="run programs without and with the library")
    running.add_argument("--lib", default=os.environ.get("HAKMEM_LIB"),
                         help="library to preload (default $HAKMEM_LIB)")
    running.add_argument("--keep", action="store_true",
                         help="keep the working directory and print where it is")
    running.add_argument("--guarded", action="store_true",
                         help="watch many blocks, and demand that some were")
    for action, arity in ((listing, "*"), (lacking, "*"), (installing, "*"), (running, "+")):
        action.add_argument("names", nargs=arity, metavar="NAME",
                            help="program, or 'default', or 'full' for all")
    return parser.parse_args(words)


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(USAGE)


def select(names):
    try:
        return registry.select(names)
    except KeyError as unknown:
        return fail(f"unknown program {unknown.args[0]!r}; known: {' '.join(registry.PROGRAMS)}")


def show(chosen, for_ctest):
    for one in chosen:
        labels = " ".join(one.labels)
        print(f"{one.name} {one.timeout} {labels}" if for_ctest else
              f"{one.name:22} {labels:9} {' '.join(one.needs)}")
    return PASS


def missing(chosen):
    needs = {need for program in chosen for need in program.needs}
    print(" ".join(sorted({packages.package(need) for need in packages.absent(needs)})))
    return PASS


def setup(chosen):
    try:
        packages.install(need for program in chosen for need in program.needs)
    except packages.Missing as why:
        print(f"SKIP setup: {why}")
        return SKIP
    print("PASS setup: every program is there")
    return PASS


def run(chosen, options):
    if not options.lib or not Path(options.lib).is_file():
        fail(f"no library to preload: {options.lib or 'give --lib PATH or set HAKMEM_LIB'}")
    worst = PASS
    for program in chosen:
        try:
            packages.install(program.needs)
            verdict = pair.run(program, Path(options.lib).resolve(), options.keep, options.guarded)
        except packages.Missing as why:
            verdict = pair.Verdict("SKIP", program.name, str(why))
        print(verdict, flush=True)
        status = {"PASS": PASS, "FAIL": FAIL, "SKIP": SKIP}[verdict.word]
        worst = FAIL if FAIL in (worst, status) else max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
