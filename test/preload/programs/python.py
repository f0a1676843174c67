# SPDX-License-Identifier: MIT
"""Python's own test-suite: the outcome of every single test is compared."""

import xml.etree.ElementTree as ElementTree

from rig.registry import program

MULTIPROCESSING = " ".join(f"test_multiprocessing_{way}" for way in ("fork", "forkserver", "spawn"))

# The classes without long timing tests; python_multiprocessing_full runs all.
BRIEF = (
    "WithProcessesTestSubclassingProcess WithProcessesTestPool "
    "WithProcessesTestQueue WithProcessesTestHeap WithProcessesTestSharedMemory "
    "WithProcessesTestSharedCTypes WithProcessesTestConnection WithManagerTestContainers "
    "TestForkAwareThreadLock TestSyncManagerTypes TestInitializers TestCloseFds"
).split()


@program("python3 python3-testsuite", long=True, timeout=600, side_by_side=True)
def python_suite(run):
    suite(run, "test_json test_pickle test_threading test_subprocess")


@program("python3 python3-testsuite", long=True, timeout=600, side_by_side=True)
def python_multiprocessing(run):
    suite(run, MULTIPROCESSING, BRIEF)


@program("python3 python3-testsuite", full=True, timeout=900, side_by_side=True)
def python_multiprocessing_full(run):
    suite(run, MULTIPROCESSING)


def suite(run, modules, classes=()):
    """Run test modules three at a time and write down name and outcome of each test."""
    matches = " ".join(f"-m '*.{name}.*'" for name in classes)
    run.cmd(f"python3 -m test -j3 --junit-xml outcome.xml {matches} {modules}", loads=10,
            seconds=600, label=f"python3 -m test {modules}", clean=lambda text: b"")
    cases = ElementTree.parse(run.place / "outcome.xml").iter("testcase")
    outcomes = [f"{case.get('name')} {outcome(case)}" for case in cases]
    run.note("number of tests", len(outcomes))
    run.note("outcomes", "\n".join(sorted(outcomes)))


def outcome(case):
    marks = [mark.tag for mark in case if mark.tag in ("failure", "error", "skipped")]
    return marks[0] if marks else "ok"
