#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds what the tests of a tier need, runs them, and says what happened; `./hakmem test` has installed the tools.

    run_tests.py gate|full|soak [--minutes N] [PATTERN]

gate: what every change must pass; full: everything but the soak; soak: the tests of half an hour and more. PATTERN, a
regular expression of test names, chooses from all tests of the tier's flavours. The gate is stopped after N minutes (15;
0: never) of a machine that it has to itself: time in which others had the processors counts in part.
"""
import argparse
import contextlib
import ctypes
import datetime
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import tests_need

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
FLAVOURS = {
    "gate": ["release", "debug-audit", "hardened", "tsan"],
    "full": ["release", "debug-audit", "hardened", "tsan", "ubsan", "clang", "musl", "aarch64", "aarch64-musl"],
}
FLAVOURS["soak"] = FLAVOURS["full"]
PROFILES = ["throughput", "low-memory", "debug"]  # configurations of the release build
FOREIGN = {  # packages of Debian for aarch64, unpacked beside the build
    "aarch64": ("cmocka", "libcmocka0", "libcmocka-dev"),
    "aarch64-musl": ("musl", "musl", "musl-dev"),
}
MINUTES = {"gate": 15, "full": 0, "soak": 0}
SLOWEST, LINES = 10, 15  # how many tests are told; how many lines of what a failed one printed


def say(text):
    print(f"hakmem: {text}", file=sys.stderr, flush=True)


def adopt_orphans():
    """What a test leaves behind becomes a child of this process, which can end it."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants():
    """Ticks of the processes that descend from this one, which is among them."""
    parents, ticks = {}, {}
    for process in [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]:
        try:
            text = Path("/proc", str(process), "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        words = text[text.rindex(")") + 2:].split()
        parents[process], ticks[process] = int(words[1]), sum(map(int, words[11:15]))
    mine, size = {os.getpid()}, 0
    while size != len(mine):
        size = len(mine)
        mine |= {process for process, parent in parents.items() if parent in mine}
    return {process: ticks[process] for process in mine if process in ticks}


def end_descendants():
    """Until none is left but those that ended and wait for their parent."""
    for _ in range(100):
        left = [process for process in descendants() if process != os.getpid() and not has_ended(process)]
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.05)


def has_ended(process):
    try:
        return ") Z " in Path("/proc", str(process), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True


# How cmocka, C tests (test/api/expect.h), Python and scripts (test/launcher/expect.sh) begin the line that says why.
REASONS = re.compile(r"\[  ERROR   \] --- |.*: expected |E? *\w*(?:Error|Exception)\b|FAIL: |hakmem: |==\d+==ERROR|WARNING: Thread")


def reason_in(output):
    """The first line that says why a test failed."""
    lines = [line.strip() for line in output.splitlines() if REASONS.match(line)]
    return lines[0][:160] if lines else "no message"


class Clock:
    """Seconds of a machine that we have to ourselves: of a busy one only our share of it counts, of a pause nothing."""

    STEP = 2

    def __init__(self):
        self.fair = 0.0
        self.before = (time.monotonic(), *self.machine(), self.ours())

    @staticmethod
    def machine():
        """Ticks of all processors: busy, idle."""
        with open("/proc/stat", encoding="ascii") as lines:
            user, nice, system, idle, wait, *rest = map(int, lines.readline().split()[1:])
        return user + nice + system + sum(rest[:3]), idle + wait

    @staticmethod
    def ours():
        """Ticks of all that descends from us, with those of what ended and was waited for."""
        return sum(descendants().values())

    def step(self):
        now = (time.monotonic(), *self.machine(), self.ours())
        passed, busy, idle, own = (after - before for after, before in zip(now, self.before))
        self.before = now
        share = 1.0
        if busy > 0 and idle < 0.1 * (busy + idle):
            share = min(1.0, max(own, 0) / busy)
        self.fair += min(passed, 2 * self.STEP) * max(share, 0.05)
        return self.fair


class Run:
    def __init__(self, words):
        self.tier, self.pattern = words.tier, words.pattern
        self.minutes = MINUTES[words.tier] if words.minutes is None else words.minutes
        self.failed, self.skipped, self.passed = [], 0, 0
        self.times = []  # (seconds, test)
        self.running = {}  # by test: since when
        self.is_stopped = False

    # --- the time limit
    def watch(self):
        clock = Clock()
        while True:
            time.sleep(Clock.STEP)
            if clock.step() > 60 * self.minutes:
                self.is_stopped = True
                end_descendants()
                return

    def call(self, *command):
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, cwd=ROOT, stdout=sys.stderr)
        if self.is_stopped:
            process.kill()
        return process.wait() == 0

    # --- build
    def configure(self, flavour):
        if flavour in FOREIGN:
            folder, *packages = FOREIGN[flavour]
            if not self.call(ROOT / "tools/fetch_packages.sh", "arm64", BUILD / flavour / folder, *packages):
                say(f"Debian's packages for aarch64 are not to be had: {' '.join(packages)}")
                if flavour == "aarch64-musl":
                    say("skipped: the flavour aarch64-musl")
                    self.skipped += 1
                    return False
        if self.call("cmake", "--preset", flavour, "-Wno-dev", "--log-level=WARNING"):
            return True
        if not self.is_stopped:
            self.fail(f"configuring {flavour}", "cmake failed", "", f"cmake --preset {flavour}")
        return False

    def labels(self):
        """Words of ctest that choose the tests of the tier."""
        if self.tier == "soak":
            chosen = ["-L", "^soak$"]
        elif self.tier == "gate" and not self.pattern:
            chosen = ["-L", "^gate$"]
        else:
            chosen = ["-LE", "^soak$"]
        return [*chosen, *(["-R", self.pattern] if self.pattern else [])]

    def configurations(self, flavour):
        if self.tier == "soak":
            return ["soak"]
        return ["", *PROFILES] if self.tier == "full" and flavour == "release" else [""]

    def build(self, flavour):
        """Whether there is anything to test."""
        if not self.configure(flavour):
            return False
        tests = {}
        for configuration in self.configurations(flavour):
            try:
                tests.update(tests_need.chosen(str(BUILD / flavour), configuration, self.labels()))
            except subprocess.CalledProcessError:
                return False  # stopped
        if not tests:
            return False
        if any("lab" in tests_need.properties(test, "LABELS") for test in tests.values()):
            # Made before the tests, whose time limits are not meant for it; they say what is missing if it cannot be.
            subprocess.run([ROOT / "tools/lab_venv.sh"], stdout=subprocess.DEVNULL, check=False)
        targets = sorted(tests_need.targets(tests.values(), str(BUILD / flavour))) or ["build.ninja"]
        say(f"--- building {flavour}, for {len(tests)} tests")
        build = ["cmake", "--build", BUILD / flavour, "--", "-j", len(os.sched_getaffinity(0)), "-k", "0", *targets]
        if not self.call(*build) and not self.is_stopped:
            self.fail(f"the build of {flavour}", "what was built is tested", "", self.again(self.pattern))
        return True

    # --- test
    def test(self, folder, configuration):
        """Runs what is chosen in a folder that ctest knows, and counts."""
        report = folder / f"junit{'-' + configuration if configuration else ''}.xml"
        report.unlink(missing_ok=True)
        words = self.labels()
        if configuration in PROFILES:
            words += ["-L", "^profile$"]
        command = ["ctest", "--test-dir", folder, "-j", str(len(os.sched_getaffinity(0)) + 1), "--output-on-failure",
                   "--no-tests=ignore", "--output-junit", report, *(["-C", configuration] if configuration else []), *words]
        if self.is_stopped:
            return
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                                   errors="replace")
        for line in process.stdout:
            if begun := re.match(r" *Start +\d+: (\S+)", line):
                self.running[begun[1]] = time.monotonic()
                continue
            if ended := re.match(r" *\d+/\d+ Test +#\d+: (\S+) .*?(Passed|\*\*\*)", line):
                self.running.pop(ended[1], None)
                if ended[2] == "Passed":
                    continue
            print(line, end="", flush=True)
        process.wait()
        self.count(report, folder)

    def count(self, report, folder):
        if not report.exists():
            if not self.is_stopped:
                self.fail(f"ctest in {folder.name}", "it left no report", "", f"ctest --test-dir {folder}")
            return
        for case in ElementTree.parse(report).iter("testcase"):
            name, seconds, status = case.get("name"), float(case.get("time")), case.get("status")
            self.times.append((seconds, name))
            if status == "fail":
                output = case.findtext("system-out") or ""
                why = case.find("failure").get("message") or reason_in(output)
                self.fail(name, f"{seconds:.1f} s, {why}", output,
                          self.again("^" + re.sub("([.+])", r"[\1]", name) + "$"))
            elif status == "run":
                self.passed += 1
            else:
                self.skipped += 1

    def together(self, flavours):
        """A folder whose tests are those of all flavours, so that none waits for the last of another."""
        folder = BUILD / "tests"
        folder.mkdir(exist_ok=True)
        (folder / "CTestTestfile.cmake").write_text("".join(f'subdirs("{BUILD / flavour}")\n' for flavour in flavours),
                                                    encoding="utf-8")
        return folder

    # --- the end
    def again(self, pattern, *words):
        """The command that repeats a part of this run."""
        tier = [] if self.tier == "gate" else [f"--{self.tier}"]
        return " ".join(["./hakmem test", *tier, *words, *([shlex.quote(pattern)] if pattern else [])])

    def fail(self, name, why, output, again):
        lines = [f"    {line}" for line in output.splitlines()[-LINES:]]
        self.failed.append("\n".join([f"\nfailed: {name}, {why}", *lines, f"again: {again}"]))

    def stop(self):
        longest = sorted((since, name) for name, since in self.running.items())
        told = ", ".join(f"{name} ({time.monotonic() - since:.0f} s)" for since, name in longest[:5]) or "the build"
        self.fail(f"the {self.tier}", f"stopped after {self.minutes} minutes of processors of its own; "
                  f"what ran longest: {told}", "", self.again(self.pattern, "--minutes 0"))

    def run(self):
        begun = time.monotonic()
        adopt_orphans()
        self.tree = tree_and_changes()
        if self.minutes:
            threading.Thread(target=self.watch, daemon=True).start()
        flavours = [flavour for flavour in FLAVOURS[self.tier] if not self.is_stopped and self.build(flavour)]
        built, build_cpu = time.monotonic(), spent()
        if flavours:
            say(f"--- the tests of {', '.join(flavours)}: only what does not pass is told")
            self.test(self.together(flavours), "soak" if self.tier == "soak" else "")
            if self.tier == "full" and "release" in flavours:
                for profile in PROFILES:
                    say(f"--- release, profile {profile}")
                    self.test(BUILD / "release", profile)
        if self.is_stopped:
            self.stop()
        elif not self.passed and not self.failed and not self.skipped:
            self.fail("nothing ran", f"no test of {', '.join(FLAVOURS[self.tier])} matches {self.pattern!r}"
                      + ("; --full has more builds, and profiles" if self.tier == "gate" else ""), "", "./hakmem test")
        ended = time.monotonic()
        print(f"\nThe {SLOWEST} slowest:")
        for seconds, name in sorted(self.times, reverse=True)[:SLOWEST]:
            print(f"  {seconds:6.1f} s  {name}")
        minutes = (ended - begun) / 60
        print(f"{minutes:.1f} minutes: build {(built - begun) / 60:.1f} ({build_cpu:.0f} s of processors), "
              f"tests {(ended - built) / 60:.1f} ({spent() - build_cpu:.0f} s)")
        self.note(flavours, minutes)
        print("\n".join(self.failed))
        print(f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0

    def note(self, flavours, minutes):
        """build/gate-passed says which tree passed: what is handed in can be compared with it."""
        if self.tier == "soak" or self.pattern:
            return
        file = BUILD / f"{self.tier}-passed"
        file.unlink(missing_ok=True)
        tree, changes = self.tree
        if tree is None:
            print(f"git does not know this tree: {file.name} is not written.")
        elif changes:
            print("The tree has changes that are not committed, so no commit is known to pass:")
            print("\n".join(changes.splitlines()[:5]))
        elif tree_and_changes() != self.tree:
            print(f"The tree changed while it was tested: {file.name} is not written.")
        elif not self.failed:
            when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            file.write_text(f"{tree} {' '.join(flavours)} {minutes:.1f} minutes {when}\n", encoding="utf-8")
            print(f"{file.relative_to(ROOT)}: tree {tree[:12]}")


def git(*words):
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def tree_and_changes():
    return git("rev-parse", "HEAD^{tree}"), git("status", "--porcelain")


def spent():
    """Seconds of processors of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tier", choices=list(FLAVOURS))
    parser.add_argument("--minutes", type=int)
    parser.add_argument("pattern", nargs="?", default="")
    words = parser.parse_intermixed_args()
    for name in ("HAKMEM_PROFILE", "HAKMEM_OPTIONS"):  # tests choose
        os.environ.pop(name, None)
    if words.tier == "soak":
        os.environ["HAKMEM_FULL"] = "1"  # tests that choose from many cases take all
    run = Run(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status = run.run()
    except KeyboardInterrupt:
        end_descendants()
        say(f"interrupted: {run.passed} passed, {len(run.failed)} failed so far")
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
