# SPDX-License-Identifier: MIT
"""Reports in JSON against their schemas in docs/schema, from a program whose threads allocate and fork meanwhile."""
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
REPORTS = 15
PROGRAM = f"""
import ctypes, os, random, sys, threading
lib = ctypes.CDLL(None)
lib.malloc.restype = ctypes.c_void_p
lib.malloc.argtypes = [ctypes.c_size_t]
lib.free.argtypes = [ctypes.c_void_p]
is_over = False

def allocate(seed):
    rng, held = random.Random(seed), [None] * 200
    while not is_over:
        place = rng.randrange(len(held))
        lib.free(held[place])
        held[place] = lib.malloc(rng.choice((16, 100, 700, 5000, 40000, 300000, 3000000)))

def fork():
    while not is_over:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

threads = [threading.Thread(target=allocate, args=(i,)) for i in range(8)] + [threading.Thread(target=fork)]
for thread in threads:
    thread.start()
write = getattr(lib, sys.argv[1])
for i in range({REPORTS}):
    write(1)
    os.write(1, b"\\0")
is_over = True
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("function, schema", [("hak_explain_json", "explain"), ("hak_heap_map", "map")])
def test_reports_under_load_are_as_their_schema_says(function, schema):
    environment = {**os.environ, "LD_PRELOAD": os.environ["HAKMEM_LIB"], "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, function], env=environment, capture_output=True, timeout=300,
                          check=True)
    validator = jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    validator.check_schema(validator.schema)
    reports = [json.loads(text) for text in done.stdout.split(b"\0")[:-1]]
    assert len(reports) == REPORTS
    for report in reports:
        validator.validate(report)
        if schema == "map":
            spans_tile(report)
        else:
            causes_are_in_order(report)


def spans_tile(report):
    assert report["superslabs"] and report["huge"]
    for superslab in report["superslabs"]:
        unit = 0
        for span in superslab["spans"]:
            assert span["unit"] == unit
            assert span["kind"] != "slab" or span["live"] <= span["blocks"] <= span["capacity"]
            unit += span["units"]
        assert unit == report["superslab_units"]


def causes_are_in_order(report):
    sizes = [cause["bytes"] for cause in report["causes"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == report["sum_bytes"]
    assert report["first"] == report["causes"][0]["name"] and report["causes"][0]["advice"] in report["text"]
    assert len({cause["name"] for cause in report["causes"]}) == len(sizes)


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*.schema.json")), ids=lambda path: path.name)
def test_schemas_refuse_what_is_something_else(schema):
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    assert not validator.is_valid({})
    assert not validator.is_valid([])
