# SPDX-License-Identifier: MIT
"""What the tests of the heap profile share: the profile of a running program, as hakmem-observe reads it, and what the tools
make of it."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

for folder in ("../observe", "../../tools"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), folder))

from reporting import LIBRARY, Program, SkipTest, run_tests  # noqa: E402,F401 pylint: disable=unused-import,wrong-import-position
from hakmem_view import profile_formats, profile_model  # noqa: E402 pylint: disable=wrong-import-position

# Every small block is in a slab, with no tag.
GUARDLESS = "guard:0,tags:0,"
OBSERVER = os.environ.get("HAKMEM_BUILD", "") + "/observe/hakmem-observe"


def observe(*words):
    """Status and standard output of hakmem-observe."""
    done = subprocess.run([OBSERVER, *map(str, words)], capture_output=True, text=True, check=False)
    if "may not be" in done.stderr:
        raise SkipTest(done.stderr.strip())
    return done.returncode, done.stdout


def profile(program):
    status, text = observe("profile", program.pid)
    assert status == 0
    return json.loads(text)


def pprof(program):
    with tempfile.TemporaryDirectory() as folder:
        status, _ = observe("profile", program.pid, "--format", "pprof", "-o", folder + "/pprof")
        assert status == 0
        return Path(folder, "pprof").read_bytes()


def again(program):
    """The program does once more what it does."""
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    assert program.process.stdout.readline() == "done\n"


def tell(program, *words):
    """The program does what it is asked, which it reads in one of its allocations."""
    with subprocess.Popen([OBSERVER, "tell", str(program.pid), *words, "--wait", "1000"], stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            again(program)
    assert run.returncode == 0, (words, run.returncode)


def heap_v2(document):
    """As `profile --heap-v2` writes it."""
    return profile_formats.heap_v2(profile_model.profile(document, "the process"))
