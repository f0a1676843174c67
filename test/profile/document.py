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


def symbols(path):
    """(start, end, name) of functions, ascending."""
    text = subprocess.run(["nm", "-S", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return sorted((int(row[0], 16), int(row[0], 16) + int(row[1], 16), row[3]) for row in rows
                  if len(row) == 4 and row[2] in "tT")


def names_of(document, program):
    """The functions of the program in each site's stack."""
    table = symbols(program)
    module = next(m for m in document["mappings"] if m["path"] == os.path.realpath(program))
    bias = int(module["start"], 16) - int(module["offset"], 16)

    def name(address):
        place = int(address, 16) - 1 - bias
        return next((found for start, end, found in table if start <= place < end), None)
    return [[found for found in map(name, site["stack"]) if found] for site in document["sites"]]


def by_function(document, program, function):
    """Sums of the sites with the function in their stack."""
    total = {"inuse": 0, "objects": 0, "alloc": 0, "peak": 0, "requested": 0, "pinned": 0, "variance": 0, "raw": 0}
    for site, names in zip(document["sites"], names_of(document, program)):
        if function in names:
            total["inuse"] += site["inuse"]["bytes"]
            total["objects"] += site["inuse"]["objects"]
            total["raw"] += site["inuse"]["raw_bytes"]
            total["alloc"] += site["alloc"]["bytes"]
            total["peak"] += site["peak"]["bytes"]
            total["requested"] += site["requested_bytes"]
            total["pinned"] += site["pinned_bytes"]
            total["variance"] += site["variance"]
    return total


def near(found, expected, sigma):
    """Six: what is sampled is chosen anew in each process, and four are exceeded once in 16 000 figures."""
    assert abs(found - expected) <= 6 * sigma + 1, (found, expected, sigma)
