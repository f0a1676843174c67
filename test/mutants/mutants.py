#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants the errors of table.py in a copy of the tree, one at a time; its tests must find each of them.

    mutants.py [--list] [--keep FOLDER] [--jobs N] [NAME...]     (no NAME: all)

A line per mutant. Exit status 1: one is not found, or its text is no longer there. A test that hangs has found it.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from table import MUTANTS  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
TEST_SECONDS = 60
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith("HAKMEM_") and name != "LD_PRELOAD"}


class Failed(Exception):
    pass


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=ENVIRONMENT, check=False)
    return done.returncode, done.stdout


def need(*command):
    status, output = run(*command)
    if status != 0:
        raise Failed(f"{' '.join(map(str, command))}\n{output[-4000:]}")
    return output


def copy_tree(to):
    """What git knows of, and new files; only those that differ, so that a kept build stays."""
    names = need("git", "-C", SOURCE, "ls-files", "-coz", "--exclude-standard").split("\0")
    names = {name for name in names if name and (SOURCE / name).is_file()}
    for old in [path for path in to.rglob("*") if path.is_file()]:
        if str(old.relative_to(to)) not in names:
            old.unlink()
    for name in names:
        if not (to / name).is_file() or (to / name).read_bytes() != (SOURCE / name).read_bytes():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, to / name)


class Build:
    """One preset of the copy."""

    def __init__(self, tree, folder, preset, jobs):
        self.tree, self.folder, self.preset, self.jobs = tree, folder, preset, jobs
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        need("cmake", "-S", tree, "-B", folder, "-G", "Ninja", f"-DHAK_FLAVOUR={preset}", "-DHAK_WERROR=OFF",
             *(launcher if shutil.which("ccache") else []))

    def pattern(self, tests):
        return f"^({tests})-{self.preset}$"

    def make(self, tests):
        targets = need(sys.executable, self.tree / "tools/tests_need.py", self.folder, "-R", self.pattern(tests)).split()
        if not targets:
            raise Failed(f"no test has a name like {self.pattern(tests)}")
        need("ninja", "-C", self.folder, "-j", self.jobs, *targets)

    def failing(self, tests, *words):
        """The names of those that fail."""
        for path in self.folder.rglob("CTestTestfile.cmake"):
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(r'TIMEOUT "\d+"', f'TIMEOUT "{TEST_SECONDS}"', text), encoding="utf-8")
        status, output = run("ctest", "--test-dir", self.folder, "-j", self.jobs, "-R", self.pattern(tests), *words)
        names = re.findall(r"^\s*\d+ - (\S+) \(", output, re.M)
        if (status == 0) == bool(names) or "***Not Run" in output:
            raise Failed(output[-4000:])
        return names


def planted(path, mutant):
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise Failed(f"{mutant.file} has its text {text.count(mutant.old)} times, not once: {mutant.old}")
    return text, text.replace(mutant.old, mutant.new)


def check(build, mutant):
    path = build.tree / mutant.file
    text, wrong = planted(path, mutant)
    path.write_text(wrong, encoding="utf-8")
    try:
        build.make(mutant.tests)
        found = build.failing(mutant.tests, "--stop-on-failure")
    finally:
        path.write_text(text, encoding="utf-8")
    if not found:
        raise Failed(f"not found by {mutant.tests}")
    return ", ".join(found)


def check_all(chosen, work, jobs):
    ENVIRONMENT.update(CCACHE_BASEDIR=str(work), CCACHE_NOHASHDIR="1")  # hits wherever the copy lies
    copy_tree(work / "tree")
    builds, failed = {}, 0
    for preset in sorted({mutant.preset for mutant in chosen}):
        tests = "|".join(mutant.tests for mutant in chosen if mutant.preset == preset)
        builds[preset] = Build(work / "tree", work / preset, preset, jobs)
        builds[preset].make(tests)
        failing = builds[preset].failing(tests)
        if failing:
            raise Failed(f"without any mutant these fail: {' '.join(failing)}")
    for mutant in chosen:
        start = time.monotonic()
        try:
            print(f"found   {mutant.name}: {check(builds[mutant.preset], mutant)}, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
        except Failed as failure:
            failed += 1
            print(f"FAILED  {mutant.name}: {failure}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - failed} found")
    return failed != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", type=Path, help="the folder of copy and builds, which the next run reuses")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    unknown = set(options.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {' '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:28} {mutant.file:26} {mutant.tests} ({mutant.preset})")
        return False
    if run("git", "-C", SOURCE, "rev-parse")[0] != 0:
        print("skipped: the tree is not one of git, which says what to copy")
        return 77
    try:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            return check_all(chosen, options.keep.resolve(), options.jobs)
        with tempfile.TemporaryDirectory(prefix="hakmem_mutants_") as work:
            return check_all(chosen, Path(work), options.jobs)
    except Failed as failure:
        print(f"FAILED  {failure}")
        return True


if __name__ == "__main__":
    sys.exit(main())
