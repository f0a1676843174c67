# SPDX-License-Identifier: MIT
"""Peers: the catalogue, what is read out of others' files and logs, commands with reasons, what is made once."""
import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from fake_system import DEBIAN, lab, script  # noqa: F401 (lab is a fixture)
from hakmem_lab import peers, place
from hakmem_lab.errors import UsageError
from hakmem_lab.peers import bases, builds, crates, debian, outside, probe
from hakmem_lab.peers.outside import Folder, Skip

from hakmem_view import process

# The catalogue


def test_catalogue():
    every = peers.catalogue()
    assert all(peer.name == name and peer.label and peer.about for name, peer in every.items())
    assert {peer.origin for peer in every.values()} == {"system", "debian", "newest", "subject"}
    assert {peer.base for peer in every.values()} <= set(peers.BASES)
    made = {*builds.RECIPES, *debian.SYSTEM, *debian.SID, "hakmem", "hakmem-hardened", "glibc", "glibc-newest",
            "musl"}
    assert made == set(every)


def test_default_and_quick():
    every = peers.catalogue()
    assert {every[name].base for name in peers.MUSL} == {"musl"}
    for names in (peers.DEFAULT, peers.QUICK, peers.MUSL):
        assert len(set(names)) == len(names) and set(names) <= set(every) and "hakmem" not in names
    assert set(peers.QUICK) <= set(peers.DEFAULT)
    assert len(peers.QUICK) >= 5
    assert sum(every[name].origin == "newest" for name in peers.QUICK) >= 3


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(UsageError, match=r"unknown allocator 'mimaloc'; there are:.* mimalloc .*mine"):
        peers.find("mimaloc", libs={"mine": "/x.so"})
    with pytest.raises(UsageError, match="unknown base 'old'; there are: musl newest system"):
        peers.find_base("old")


# What is read out of others' files and logs


@pytest.mark.parametrize("version, short", [
    ("3.2.8", "3.2.8"), ("5.3.1-0-g81034ce1f137", "5.3.1"), ("gperftools 2.10", "2.10"), ("2.43", "2.43"),
    ("0.7.6, commit f126f1c94d62 (of the build)", "0.7.6"), ("librpmalloc1 2.0.1-1 (of the build)", "2.0.1"),
    ("2025-06-16, libtcmalloc-sys 0.1.14 (of the build)", "2025-06-16"), ("unknown (of the build)",) * 2, ("", "")])
def test_short_version(version, short):
    assert peers.short_version(version) == short


def test_mimalloc_number():
    assert builds.mimalloc_number("#pragma once\n#define MI_MALLOC_VERSION 30302   // 3.3.2\n") == (3, 3, 2)
    assert builds.mimalloc_number("#define MI_MALLOC_VERSION 101211") == (10, 12, 11)
    with pytest.raises(Skip, match="no version"):
        builds.mimalloc_number("#define MI_MALLOC 1")


def test_tcmalloc_files():
    names = [f"c_src/tcmalloc/tcmalloc/part{n}.cc" for n in range(60)] + ["c_src/tcmalloc/tcmalloc/internal/rseq.S"]
    text = "\n".join(f'        "{name}",' for name in [*names, "c_src/malloc_bridge.cc"]) + '\n include("c_src/a")'
    assert builds.tcmalloc_files(text) == sorted([*names, "c_src/tcmalloc/tcmalloc/tcmalloc.cc"])
    with pytest.raises(Skip, match="build script"):
        builds.tcmalloc_files('"c_src/one.cc"')


def test_hardened_switches():
    names = [f"SWITCH_{n}" for n in range(12)]
    text = "# Keep=this\n\n" + "\n".join(f"{name}=true" for name in names) + "\nLAST = 33554432 # 32 MiB\n"
    assert builds.hardened_switches(text) == [*(f"{name}=true" for name in names), "LAST=33554432"]
    with pytest.raises(Skip, match="switches"):
        builds.hardened_switches("ONE=1\n")


def test_hardened_malloc_takes_part_only_if_named():
    names = {"hardened_malloc", "hardened_malloc-light"}
    assert names <= set(peers.catalogue()) and not names & {*peers.DEFAULT, *peers.QUICK}


def test_changelog_date():
    log = "## [Unreleased]\n\n## [0.1.14](there) - 2025-06-16\n\n### Other\n\n## [0.1.13](there) - 2025-06-15\n"
    assert builds.changelog_date(log, "0.1.13") == "2025-06-15"
    assert builds.changelog_date(log, "0.1.1") == ""


def test_compile_flags_are_those_of_most_files():
    log = ("$ make -j 2\ngcc -std=gnu11 -Wall -O3 -DNDEBUG -DMI_EXPORT=x -I/somewhere -o a.o -c a.c\n"
           "gcc -std=gnu11 -O3 -DNDEBUG -o b.o -c b.c\ng++ -O0 -o c.o -c c.cc\nit's -c no -o command\n")
    assert builds.compile_flags(log) == "-std=gnu11 -O3 -DNDEBUG"
    assert builds.compile_flags("") == ""


LOCK = """version = 4

[[package]]
name = "cc"
version = "1.2.3"
source = "registry+somewhere"
checksum = "11"

[[package]]
name = "snmalloc-sys"
version = "0.7.6"
source = "registry+somewhere"
checksum = "22"
dependencies = [
 "cc",
]

[[package]]
name = "sources-for-the-lab"
version = "0.0.0"
"""


def test_locked():
    assert crates.locked(LOCK, "snmalloc-sys") == ("0.7.6", "22")
    with pytest.raises(Skip, match="resolved no mimalloc"):
        crates.locked(LOCK, "mimalloc")


def test_cargo_must_know_the_sparse_registry():
    crates.check_cargo("cargo 1.85.0 (d73d2caf9 2024-12-31)\n")
    for said in ("cargo 1.65.0", "", "nonsense"):
        with pytest.raises(Skip, match="needs cargo 1.70"):
            crates.check_cargo(said)


def test_mirror():
    targets = ["http://a/security/|Debian|Debian-Security", "http://b/vendor|Vendor|Debian", DEBIAN, ""]
    assert debian.mirror("\n".join(targets)) == "http://c/debian/"
    assert debian.mirror("http://u/ubuntu|Ubuntu|Ubuntu\n") == ""


@pytest.mark.parametrize("log, line", [
    ("a.c:1:2: error: no room\nmake[1]: *** [a.o] Error 1\nmake: *** [all] Error 2\n", "a.c:1:2: error: no room"),
    ("x.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit", "x.o: undefined reference to `f'"),
    ("error: failed to get `x`\n\nCaused by:\n  spoiled file", "error: failed to get `x`"),
    ("CMake Error at x:1 (y):\n  y could not find\n\nSee also \"b/CMakeError.log\".\n", "y could not find"),
    ("E: Unable to locate package libx", "E: Unable to locate package libx"),
    ("only words\n", "only words"), ("", "it says nothing")])
def test_last_error(log, line):
    assert outside.last_error(log) == line


def test_last_error_names_no_host_and_no_folder_of_this_machine():
    line = outside.last_error(f"error: https://index.example.org/x not there, see {place.ROOT}/build/lab/log")
    assert line == "error: (the registry) not there, see build/lab/log"
    assert len(outside.last_error("error " + "x" * 500)) == 200


def test_shown():
    assert outside.shown(place.ROOT / "build" / "lab" / "x.log") == "build/lab/x.log"
    assert outside.shown("/elsewhere/x.log") == "/elsewhere/x.log"


@pytest.mark.parametrize("said, reason", [
    ("ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored.\n",
     "invalid ELF header"),
    ("ERROR: ld.so: object 'x.so' from --preload cannot be preloaded (wrong ELF class: ELFCLASS32): ignored.\n",
     "wrong ELF class: ELFCLASS32"),
    ("true: libc.so.6: version `GLIBC_2.38' not found (required by x.so)", "it needs glibc 2.38 or newer"), ("", "")])
def test_complaint_of_the_loader(said, reason):
    assert probe._complaint(said) == reason


def test_glibc_version():
    assert bases._glibc_version("libc6 2.43-7, libgcc-s1 16.2.0-4") == "2.43"
    assert bases._glibc_version("libgcc-s1 16.2.0-4") == ""


# Running things


def test_run_tells_the_last_error_and_the_log(lab):
    script(lab, "breaks", 'echo "a.c:1: error: odd"; echo "make: *** [all] Error 2"; exit 2')
    with pytest.raises(Skip, match=r"^breaks failed: a\.c:1: error: odd \(log: .*build\.log\)$"):
        outside.run(["breaks", "x y"], lab / "p" / "build.log")
    assert (lab / "p" / "build.log").read_text().startswith("$ breaks 'x y'\n")
    with pytest.raises(Skip, match="missing does not start: No such file"):
        outside.run(["missing"], lab / "log")


def test_run_ends_a_command_that_does_not_end_and_its_children(lab):
    script(lab, "waits", f"sleep 60 & echo $! > {lab}/child; wait")
    started = time.monotonic()
    with pytest.raises(Skip, match="waits: no end after 3 s"):
        outside.run(["waits"], lab / "log", seconds=3)
    assert time.monotonic() - started < 30
    child = int((lab / "child").read_text())
    until = time.monotonic() + 20
    while process.lives(child):
        assert time.monotonic() < until, "the child lives on"
        time.sleep(0.05)


def test_foreign_words_do_not_reach_a_build(lab, monkeypatch):
    for name in ("LD_PRELOAD", "CFLAGS", "GLIBC_TUNABLES", "MAKEFLAGS"):
        monkeypatch.setenv(name, "")
    script(lab, "tells", "env")
    text = outside.output(["tells"], MORE="1")
    assert "MORE=1" in text and "LC_ALL=C" in text
    assert not re.search(r"^(LD_PRELOAD|CFLAGS|GLIBC_TUNABLES|MAKEFLAGS)=", text, re.MULTILINE)


def test_missing_tools_are_for_root_to_install(lab, monkeypatch):
    with pytest.raises(Skip, match="needs cargo cmake; .*'apt-get install cargo-web cmake ca-certificates'"):
        outside.need(["cargo", "cmake"], print)  # root, but no apt-get
    script(lab, "apt-get", "exit 0")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Skip, match="needs make; install it"):
        outside.need(["make"], print)


def test_root_installs_the_first_package_that_there_is(lab):
    script(lab, "apt-cache", f'[ "$2" = cargo ] && [ -e {lab}/said ] && echo "  Candidate: 1.85" || '
                             'echo "  Candidate: (none)"')
    script(lab, "apt-get", f'echo "$@" >> {lab}/said')
    told = []
    outside.install([("cargo-web", "cargo")], "needs cargo", told.append)
    updated, installed = (lab / "said").read_text().splitlines()
    assert updated.endswith("update") and installed.endswith(" install cargo")
    assert "--no-install-recommends" in installed
    assert told == ["installing cargo"]


# What is made once


def stamped(folder, make, **more):
    return outside.made(folder, "r/1", **{"build": True, "rebuild": False, "progress": print, "make": make, **more})


def test_made_once_until_something_changes(lab):
    folder, calls = Folder("p"), []

    def make():
        calls.append(1)
        (folder.path / "lib.so").write_text(str(len(calls)))
        return {"library": "lib.so", "version": str(len(calls))}

    with pytest.raises(Skip, match="not built yet"):
        stamped(folder, make, build=False)
    assert stamped(folder, make)["version"] == stamped(folder, make)["version"] == "1"
    assert stamped(folder, make, build=False)["version"] == "1"
    assert stamped(folder, make, rebuild=True)["version"] == "2"
    (folder.path / "lib.so").write_text("touched by someone")
    assert stamped(folder, make)["version"] == "3"
    assert outside.made(folder, "r/2", True, False, print, make)["version"] == "4"
    assert not folder.work.exists()


def test_a_broken_build_leaves_no_stamp(lab):
    folder = Folder("p")

    def make(broken):
        (folder.path / "lib.so").write_text("x")
        if broken:
            raise Skip("broken")
        return {"library": "lib.so"}

    stamped(folder, lambda: make(False))
    with pytest.raises(Skip, match="broken"):
        stamped(folder, lambda: make(True), rebuild=True)
    with pytest.raises(Skip, match="not built yet"):
        stamped(folder, lambda: make(False), build=False)


def test_one_lab_at_a_time(lab):
    told, order = [], []

    def other():
        with outside.lock(told.append):
            order.append("other")

    with outside.lock(told.append):
        thread = threading.Thread(target=other)
        thread.start()
        until = time.monotonic() + 60
        while not told and time.monotonic() < until:
            time.sleep(0.02)
        order.append("first")
    thread.join()
    assert order == ["first", "other"] and "another lab" in told[0]


def test_stamps_are_plain_json(lab):
    folder = Folder("p")
    stamped(folder, lambda: ((folder.path / "l").write_text("x"), {"library": "l"})[1])
    assert json.loads((folder.path / "stamp.json").read_text())["recipe"] == "r/1"
    (folder.path / "stamp.json").write_text("{")
    assert folder.stamp("r/1") is None
