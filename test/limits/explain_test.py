#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does hak_explain name the right cause first, and do its causes sum to what the kernel says?

    explain_test.py PROGRAM STATIC_PROGRAM SCENARIO

PROGRAM is explain_load; while it waits, its RSS is read from outside. The static one has less memory of others.
Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SKIP = 77
MIB = 1 << 20
KEEP = "retain_min:1g,retain_percent:1000,retain_idle:1g,huge_cache:1g"
DROP = "retain_min:0,retain_percent:0,huge_cache:0"
SCENARIOS = {  # options, the cause that comes first, least bytes of it
    "leak": ("", "live", 30 * MIB),
    "survivors": ("retain_idle:1g", "slab_free", 50 * MIB),
    "caches": (f"{DROP},cache:1g,bin_bytes:1m,bin_blocks:65536", "bins", 10 * MIB),
    "remote": (f"{KEEP},huge_pages:0", "remote", 30 * MIB),
    "spans": (KEEP, "retained_dirty", 45 * MIB),
    "huge": (KEEP, "retained_dirty", 62 * MIB),
    "padding": ("", "huge_page_padding", 1.5 * MIB),
}


# The hardened library's quarantine returns so much of freed large blocks at once, whatever the options say.
WITHDRAWN = {"spans": 10 * MIB, "huge": 10 * MIB} if os.environ.get("HAKMEM_FLAVOUR") == "hardened" else {}


def huge_pages():
    path = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return path.exists() and "[never]" not in path.read_text() and os.sysconf("SC_PAGESIZE") == 4096


def resident(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no Rss")


def size(value):
    """As tools/hakmem_view/terminal.py writes it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 999.5:
            break
        value /= 1024
    digits = 0 if unit == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {unit}"


def run(program, scenario, options):
    """What the program says, and what the kernel says of it then."""
    environment = {**os.environ, "HAKMEM_PROFILE": "balanced", "HAKMEM_OPTIONS": options}
    with subprocess.Popen([program, scenario], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=environment) as process:
        text = ""
        while not text.endswith("done\n"):
            line = process.stdout.readline()
            if not line:
                process.stdin.close()
                sys.exit(SKIP if process.wait() == SKIP else 1)
            text += line
        rss = resident(process.pid)
        process.stdin.close()
        assert process.wait() == 0
    return json.loads(text.removesuffix("done\n")), rss


def main():
    program, static_program, scenario = sys.argv[1:]
    options, first, least = SCENARIOS[scenario]
    least -= WITHDRAWN.get(scenario, 0)
    if scenario == "padding" and not huge_pages():
        print("skipped: the kernel has no transparent huge pages")
        return SKIP
    said, rss = run(static_program if scenario == "padding" else program, scenario, options)
    sizes = {cause["name"]: cause["bytes"] for cause in said["causes"]}
    print(said["text"])
    print(f"RSS {rss}, the sum {said['sum_bytes']}:", sizes)
    assert said["first"] == first, f"{said['first']}, not {first}"
    assert sizes[first] >= least
    assert said["causes"][0]["name"] == first and said["causes"][0]["title"] in said["text"]
    assert said["causes"][0]["advice"] in said["text"] and said["text"].endswith(".")
    assert f", {size(sizes[first])} (" in said["text"] and f"RSS is {size(said['rss_bytes'])}." in said["text"]
    assert sum(sizes.values()) == said["sum_bytes"]
    assert abs(said["sum_bytes"] - rss) <= rss * 0.02, "the causes do not sum to RSS"
    assert abs(said["rss_bytes"] - rss) <= rss * 0.02
    assert said["notes"] == []
    returnable = {cause["name"]: cause.get("returnable_bytes") for cause in said["causes"]}
    assert returnable["retained_dirty"] == sizes["retained_dirty"] and returnable["live"] is None
    if scenario == "survivors":  # a block in use in each OS page, but for the last slab
        assert returnable["slab_free"] < sizes["slab_free"] / 100
        assert "malloc_trim(0) returns" in said["text"].split(" Of these ")[1]
    if scenario == "caches":
        assert len(said["threads"]) >= 4 and said["threads"][3]["cached_bytes"] >= 2 * MIB
    return 0


if __name__ == "__main__":
    sys.exit(main())
