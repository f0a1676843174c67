#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The options as JSON: keys are those of the schema, one row for each row of options.def, values are what was asked for.

Usage: conf_json_test.py PROGRAM   (the runner of conf)
"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["HAKMEM_SOURCE"])
SCHEMA = json.loads((ROOT / "docs/schema/options.schema.json").read_text())
PATH = "/tmp/\N{LATIN SMALL LETTER E WITH ACUTE}\"\\\n\x7f" + 40 * "\N{SNOWMAN}"


def report(program, profile, options):
    environment = {**os.environ, "HAKMEM_PROFILE": profile, "HAKMEM_OPTIONS": options}
    run = subprocess.run([program, "show", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, env=environment)
    assert run.stderr == b"", run.stderr
    return json.loads(run.stdout)


def check_shape(found):
    rows = SCHEMA["properties"]["options"]["items"]
    assert sorted(found) == sorted(SCHEMA["required"]), found.keys()
    assert re.match(SCHEMA["properties"]["hakmem"]["pattern"], found["hakmem"]) and found["schema"] == 1
    for row in found["options"]:
        assert sorted(row) == sorted(rows["required"]), row
        assert all(isinstance(value, str) for value in row.values()), row
        for key in ("type", "source"):
            assert row[key] in rows["properties"][key]["enum"], row
    table = (ROOT / "src/base/options.def").read_text()
    assert [row["name"] for row in found["options"]] == re.findall(r"^HAK_OPTION\((\w+)", table, re.M)


def main():
    program = sys.argv[1]
    path = PATH.encode()[:107].decode(errors="ignore")
    found = report(program, "low-memory", f"report:json,bin_bytes:24k,report_file:{path},control:@hakmem:%p")
    check_shape(found)
    assert found["profile"] == "low-memory"
    rows = {row["name"]: row for row in found["options"]}
    expected = {"report": ("json", "off"), "bin_bytes": ("24k", "128k"), "control": ("@hakmem:%p", ""), "retain_min": ("1m", "32m"),
                "report_file": (path.encode().decode("latin-1"), "")}  # byte by byte
    for name, pair in expected.items():
        assert (rows[name]["value"], rows[name]["default"]) == pair, rows[name]
    assert (rows["bin_bytes"]["source"], rows["retain_min"]["source"], rows["learn"]["source"]) == \
        ("HAKMEM_OPTIONS", "HAKMEM_PROFILE", "default")
    print(f"{len(rows)} options")


if __name__ == "__main__":
    main()
