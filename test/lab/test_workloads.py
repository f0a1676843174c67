# SPDX-License-Identifier: MIT
"""Every workload does the same on the library as on the C library's malloc, whatever flavour of the library this is."""
import json
import os
import subprocess

import pytest
from hakmem_lab import micro, place

LIBRARY = os.environ.get("HAKMEM_LIB") or str(place.HAKMEM)
SCALE = 0.01
STATE_THE_END = {"phase_shift", "fragmentation", "survivors", "drift", "day", "shift", "exchange"}
SMALLER = {"shift": ["4m", "40", "20"]}  # rows without an amount of work that --scale could change
LARGE = {"realloc/giant", "idle_threads/1000"}  # of no use at a small scale


@pytest.fixture(scope="module", autouse=True)
def built():
    micro.build()


def result(row, preload, known={}):
    """Of one run, whichever test asks first."""
    if (row.id, preload) not in known:
        known[row.id, preload] = measured(row, preload)
    return known[row.id, preload]


def measured(row, preload):
    name, *arguments = row.arguments(SCALE)
    arguments[1:] = SMALLER.get(name, arguments[1:])
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if preload:
        env["LD_PRELOAD"] = preload
    done = subprocess.run([place.PROGRAMS / name, *arguments], env=env, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("row", [row for row in micro.catalogue() if row.id not in LARGE and not row.named],
                         ids=lambda row: row.id)
def test_same_check(row):
    ours, theirs = result(row, LIBRARY), result(row, "")
    assert os.path.realpath(ours["malloc"]) == os.path.realpath(LIBRARY)
    assert ours["check"] == theirs["check"] and ours["ops"] == theirs["ops"] > 0


@pytest.mark.parametrize("row", [row for row in micro.catalogue() if row.info.program.split()[0] in STATE_THE_END
                                 and not row.named], ids=lambda row: row.id)
def test_live_bytes_are_stated(row):
    """No more lives at the end than at the peak, and all that lives is resident."""
    found = result(row, LIBRARY)
    assert 0 < found["live_end"] <= found["live_peak"] < found["hwm_kib"] * 1024
    assert found["live_end"] < found["rss_live_kib"] * 1024


def test_wrong_arguments_are_refused():
    for row in micro.catalogue():
        done = subprocess.run([place.PROGRAMS / row.argv[0], "nonsense"], capture_output=True, text=True, timeout=10,
                              check=False)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, row.id
