#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rig notices what it is there to notice: each test is a program that misbehaves in one way.

Any shared library serves as the one to preload; HAKMEM_LIB names it.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import matrix  # noqa: E402
from rig import outcome, packages, pair, proof, registry, watched  # noqa: E402

LIB = os.environ.get("HAKMEM_LIB")
ONLY_PRELOADED = '[ -z "$LD_PRELOAD" ] || '  # a shell word for what happens in the second pass only


def verdict(steps, side_by_side=False):
    entry = registry.Program("subject", steps, (), ("real",), 60, side_by_side)
    return pair.run(entry, Path(LIB).resolve())


def shell(script, **how):
    """A program of one step."""
    return verdict(lambda run: run.cmd("sh", "-c", script, **how))


class ProofTest(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "only root's watch tells processes apart")
    def test_processes_that_open_at_once_are_all_counted(self):
        with tempfile.NamedTemporaryFile() as file:
            watch = proof.LoadWatch(file.name)
            for _ in range(30):
                readers = [subprocess.Popen(["cat", file.name]) for _ in range(7)]
                for reader in readers:
                    reader.wait()
                self.assertGreaterEqual(watch.take(), 7)
            watch.close()


class WatchedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.watched = watched.Watched(Path(folder.name))

    def report(self, pid, count):
        report = json.dumps({"events": {"guard_sample": count}})
        (self.watched.folder / str(pid)).write_text(report)

    def test_blocks_of_all_processes_are_counted(self):
        for pid, count in ((1, 3), (2, 0), (3, 4)):
            self.report(pid, count)
        self.assertIn("7 watched blocks in 2 of 3 processes", self.watched.verdict())

    def test_processes_without_watched_blocks_fail(self):
        for pid in (1, 2):
            self.report(pid, 0)
        with self.assertRaisesRegex(outcome.Difference, "no block was watched by the 2"):
            self.watched.verdict()

    def test_no_report_fails(self):
        with self.assertRaisesRegex(outcome.Difference, "by the 0 processes"):
            self.watched.verdict()


@unittest.skipUnless(LIB, "HAKMEM_LIB is not set")
class RigTest(unittest.TestCase):
    def expect(self, seen, word, *parts):
        self.assertEqual(seen.word, word, str(seen))
        for part in parts:
            self.assertIn(part, seen.text)

    def test_same_output_passes(self):
        self.expect(shell("echo same; echo err >&2"), "PASS", "1 results identical", "1 processes")

    def test_other_output_fails(self):
        seen = shell(f"echo one; {ONLY_PRELOADED} echo two")
        self.expect(seen, "FAIL", "line 2", "b'two'", "command: cd ")

    def test_other_stderr_fails(self):
        self.expect(shell(f"{ONLY_PRELOADED} echo hakmem: oops >&2"), "FAIL", "hakmem: oops")

    def test_other_status_fails(self):
        self.expect(
            shell(f"{ONLY_PRELOADED} exit 3"), "FAIL", "exit status 3, exit status 0 expected"
        )

    def test_crash_fails(self):
        self.expect(shell(f"{ONLY_PRELOADED} kill -SEGV $$"), "FAIL", "SIGSEGV")

    def test_other_file_fails(self):
        def steps(run):
            run.cmd("sh", "-c", "echo $LD_PRELOAD > made", label="make")
            run.file("made")

        self.expect(verdict(steps), "FAIL", "step 'file made' differs")

    def test_side_by_side_difference_fails(self):
        def steps(run):
            run.cmd("sh", "-c", "echo ${LD_PRELOAD:+set}")

        self.expect(verdict(steps, side_by_side=True), "FAIL", "b'set'")

    def test_hang_fails(self):
        self.expect(
            shell(f"{ONLY_PRELOADED} sleep 60", seconds=1), "FAIL", "did not end within 1 s"
        )

    def test_failure_without_library_is_named(self):
        self.expect(shell("exit 1"), "FAIL", "fails without the library already")

    def test_lost_preload_fails(self):
        seen = shell("exec env -u LD_PRELOAD sh -c 'echo without'", loads=3)
        self.expect(seen, "FAIL", "processes loaded the library, at least 3 should")

    def test_server_without_library_fails(self):
        def steps(run):
            script = "exec env -u LD_PRELOAD sleep 60"
            with run.server("sh", "-c", script, ready=lambda: True, status=-15):
                time.sleep(0.5)

        self.expect(verdict(steps), "FAIL", "do not have the library in their maps")

    def test_server_crash_in_log_fails(self):
        def steps(run):
            script = f"{ONLY_PRELOADED} echo 'worker 7 exited on signal 11'; exec sleep 60"
            with run.server("sh", "-c", script, ready=lambda: True, status=-15):
                time.sleep(0.3)

        self.expect(verdict(steps), "FAIL", "signal 11")

    def test_processes_left_behind_are_ended(self):
        self.expect(shell("setsid sleep 1000 >/dev/null 2>&1 </dev/null &"), "PASS")
        self.assertEqual(proof.family(os.getpid()), [os.getpid()])

    def test_working_directory_is_removed(self):
        places = []
        self.expect(verdict(lambda run: places.append(run.place)), "PASS")
        self.assertFalse(any(place.exists() for place in places))

    def test_missing_program_without_root_skips_with_command(self):
        with (
            mock.patch("os.geteuid", return_value=1000),
            self.assertRaises(packages.Missing) as why,
        ):
            packages.install(["no-such-program"])
        self.assertIn("apt-get install no-such-program", str(why.exception))

    def test_unknown_name_is_wrong_use(self):
        output = io.StringIO()
        with contextlib.redirect_stderr(output), self.assertRaises(SystemExit) as leave:
            matrix.select(["no-such-entry"])
        self.assertEqual(leave.exception.code, matrix.USAGE)
        self.assertIn("known: bash", output.getvalue())


if __name__ == "__main__":
    unittest.main(verbosity=2)
