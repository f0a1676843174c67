#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The rig notices what it is there to notice: each test is a program that misbehaves in one way.

Any shared library serves as the one to preload; HAKMEM_LIB names it.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import matrix  # noqa: E402
from rig import outcome, packages, pair, proof, registry, run, watched  # noqa: E402

LIB = os.environ.get("HAKMEM_LIB")
ONLY = '[ -z "$LD_PRELOAD" ] || '  # a shell word for what happens in the second pass only


def verdict(steps, side_by_side=False):
    entry = registry.Program("subject", steps, (), ("real",), 60, side_by_side)
    return pair.run(entry, Path(LIB).resolve())


def shell(script, **how):
    """A program of one step."""
    return lambda run: run.cmd("sh", "-c", script, **how)


def writes(run):
    run.cmd("sh", "-c", "echo $LD_PRELOAD > made", label="make")
    run.file("made")


def hangs(run):
    run.cmd("sh", "-c", f"{ONLY} sleep 600", seconds=1 if run.lib else 300)


def serves(script):
    """A program of one server, which is up once its log has a line."""
    def steps(run):
        log = run.place.parent / "sh.log"
        with run.server("sh", "-c", script, ready=lambda: log.read_bytes(), status=-15):
            pass
    return steps


CASES = {
    "other output": (shell(f"echo one; {ONLY} echo two"), "line 2", "b'two'", "command: cd "),
    "other stderr": (shell(f"{ONLY} echo hakmem: oops >&2"), "hakmem: oops"),
    "other status": (shell(f"{ONLY} exit 3"), "exit status 3, exit status 0 expected"),
    "crash": (shell(f"{ONLY} kill -SEGV $$"), "SIGSEGV"),
    "other file": (writes, "step 'file made' differs"),
    "hang": (hangs, "did not end within 1 s"),
    "failure without the library": (shell("exit 1"), "fails without the library already"),
    "lost preload": (shell("exec env -u LD_PRELOAD sh -c 'echo without'", loads=3),
                     "processes loaded the library, at least 3 should"),
    "server without the library": (serves("exec env -u LD_PRELOAD sh -c 'echo up; exec sleep 600'"),
                                   "do not have the library in their maps"),
    "crash in the log of a server": (
        serves(f"{ONLY} echo 'worker 7 exited on signal 11'; echo up; exec sleep 600"),
        "signal 11"),
}


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

    def test_watched_blocks_of_all_processes_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            found = watched.Watched(Path(folder))
            for pid in range(3):
                with self.assertRaisesRegex(outcome.Difference, f"no block .* by the {pid} "):
                    found.verdict()
                (found.folder / str(pid)).write_text(json.dumps({"events": {"guard_sample": 0}}))
            (found.folder / "7").write_text(json.dumps({"events": {"guard_sample": 7}}))
            self.assertIn("7 watched blocks in 1 of 4 processes", found.verdict())


@unittest.skipUnless(LIB, "HAKMEM_LIB is not set")
class RigTest(unittest.TestCase):
    def expect(self, seen, word, *parts):
        self.assertEqual(seen.word, word, str(seen))
        for part in parts:
            self.assertIn(part, seen.text)

    def test_whatever_is_wrong_fails(self):
        for name, (steps, *parts) in CASES.items():
            with self.subTest(name), mock.patch.object(run, "MAPS_SECONDS", 5):
                self.expect(verdict(steps), "FAIL", *parts)

    def test_side_by_side_difference_fails(self):
        self.expect(verdict(shell("echo ${LD_PRELOAD:+set}"), side_by_side=True), "FAIL", "b'set'")

    def test_same_output_passes_and_nothing_is_left(self):
        places = []

        def steps(run):
            places.append(run.place)
            run.cmd("sh", "-c", "echo same; echo err >&2")
            run.cmd("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
        self.expect(verdict(steps), "PASS", "2 results identical", " processes with the library")
        self.assertEqual(proof.family(os.getpid()), [os.getpid()])
        self.assertFalse(any(place.exists() for place in places))

    def test_missing_program_without_root_skips_with_command(self):
        with (mock.patch("os.geteuid", return_value=1000),
              self.assertRaisesRegex(packages.Missing, "apt-get install no-such-program")):
            packages.install(["no-such-program"])

    def test_unknown_name_is_wrong_use(self):
        with self.assertRaises(SystemExit) as leave:
            matrix.select(["no-such-entry"])
        self.assertEqual(leave.exception.code, matrix.USAGE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
