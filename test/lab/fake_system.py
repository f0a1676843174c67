# SPDX-License-Identifier: MIT
"""A system of its own for the tests of peers: a lab in an empty folder, and small scripts for commands in the one
folder that PATH names. No network, no compiler."""
import os
import re
from pathlib import Path

import pytest
from hakmem_lab import place
from hakmem_lab.peers import debian, outside

DEBIAN = "http://c/debian/|Debian|Debian"  # a mirror as apt tells it


@pytest.fixture(autouse=True)
def lab(tmp_path, monkeypatch):
    """A lab of its own, root of a system without any tool."""
    monkeypatch.setattr(place, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(place, "PROGRAMS", tmp_path / "programs")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "programs").mkdir()
    outside.update_lists.cache_clear()
    debian._sid.cache_clear()
    return tmp_path


def script(lab, name, text, folder="bin"):
    path = lab / folder / name
    path.write_text("#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\n" + text + "\n")
    path.chmod(0o755)
    return path


def some_library():
    """A shared library of this machine that can be preloaded and is no allocator."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if re.search(r"/lib(m|z|pthread|dl|ffi|crypto)[.-][^/]*so", path) and os.path.isfile(path):
            return path
    return pytest.skip("no library to try with")


def fake_which_malloc(lab, version="", origin="${LD_PRELOAD:-/bin/true}"):
    line = '{"malloc":"%s","glibc":"2.36","version":"%s","raw":0}'
    script(lab, "which_malloc", f"printf '{line}' \"{origin}\" \"{version}\"", "programs")
