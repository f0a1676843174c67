# SPDX-License-Identifier: MIT
"""Peers: the catalogue, what is read out of others' files and logs, commands with reasons, what is
made once."""
import os
import re
import threading

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
    assert set(every) == {*builds.RECIPES, *debian.SYSTEM, *debian.SID, "hakmem", "hakmem-hardened",
                          "glibc", "glibc-newest", "musl"}
    assert {every[name].base for name in peers.MUSL} == {"musl"}
    for names in (peers.DEFAULT, peers.QUICK, peers.MUSL):
        assert len(set(names)) == len(names) and set(names) <= set(every) and "hakmem" not in names
    assert set(peers.QUICK) <= set(peers.DEFAULT) and len(peers.QUICK) >= 5
    assert not {"hardened_malloc", "hardened_malloc-light"} & set(peers.DEFAULT)  # only if named


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(UsageError, match=r"allocator 'mimaloc'; there are:.* mimalloc .*mine"):
        peers.find("mimaloc", libs={"mine": "/x.so"})
    with pytest.raises(UsageError, match="unknown base 'old'; there are: musl newest system"):
        peers.find_base("old")


# What is read out of others' files and logs

PARTS = [f"c_src/tcmalloc/tcmalloc/part{n}.cc" for n in range(60)]
BUILD_RS = "\n".join(f'   "{name}",'
                     for name in [*PARTS, "c_src/bridge.cc"]) + '\n include("c_src/a")'
SWITCHES = [f"SWITCH_{n}=true" for n in range(12)]
CHANGES = "## [Unreleased]\n\n## [0.1.14](there) - 2025-06-16\n\n### Other\n"
LOG = ("$ make -j 2\ngcc -std=gnu11 -Wall -O3 -DNDEBUG -DMI_EXPORT=x -I/somewhere -o a.o -c a.c\n"
       "gcc -std=gnu11 -O3 -DNDEBUG -o b.o -c b.c\ng++ -O0 -o c.o -c c.cc\nit's -c no -o command\n")
LOCK = """version = 4

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
MIRRORS = f"http://a/security/|Debian|Debian-Security\nhttp://b/vendor|Vendor|Debian\n{DEBIAN}\n"
LD = "ERROR: ld.so: object 'x.so' from %s cannot be preloaded (%s): ignored.\n"


@pytest.mark.parametrize("read, text, found", [
    (peers.short_version, "5.3.1-0-g81034ce1f137", "5.3.1"),
    (peers.short_version, "gperftools 2.10", "2.10"),
    (peers.short_version, "librpmalloc1 2.0.1-1 (of the build)", "2.0.1"),
    (peers.short_version, "", ""),
    (peers.short_version, "2025-06-16, libtcmalloc-sys 0.1.14 (of the build)", "2025-06-16"),
    (peers.short_version, "unknown (of the build)", "unknown (of the build)"),
    (builds.mimalloc_number, "#pragma once\n#define MI_MALLOC_VERSION 30302   // 3.3.2\n",
     (3, 3, 2)),
    (builds.mimalloc_number, "#define MI_MALLOC_VERSION 101211", (10, 12, 11)),
    (builds.tcmalloc_files, BUILD_RS, sorted([*PARTS, "c_src/tcmalloc/tcmalloc/tcmalloc.cc"])),
    (builds.hardened_switches, "# Keep=this\n\n" + "\n".join(SWITCHES) + "\nLAST = 3 # MiB\n",
     [*SWITCHES, "LAST=3"]),
    (lambda text: builds.changelog_date(text, "0.1.14"), CHANGES, "2025-06-16"),
    (lambda text: builds.changelog_date(text, "0.1.1"), CHANGES, ""),
    (builds.compile_flags, LOG, "-std=gnu11 -O3 -DNDEBUG"), (builds.compile_flags, "", ""),
    (lambda text: crates.locked(text, "snmalloc-sys"), LOCK, ("0.7.6", "22")),
    (crates.check_cargo, "cargo 1.85.0 (d73d2caf9 2024-12-31)\n", None),
    (debian.mirror, MIRRORS, "http://c/debian/"),
    (debian.mirror, "http://u/ubuntu|Ubuntu|Ubuntu\n", ""),
    (outside.last_error, "a.c:1: error: no room\nmake[1]: *** [a.o] Error\n",
     "a.c:1: error: no room"),
    (outside.last_error, "x.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit",
     "x.o: undefined reference to `f'"),
    (outside.last_error, "error: failed to get `x`\n\nCaused by:\n  spoiled",
     "error: failed to get `x`"),
    (outside.last_error,
     "CMake Error at x:1 (y):\n  y could not find\n\nSee also \"CMakeError.log\".\n",
     "y could not find"),
    (outside.last_error, "E: Unable to locate package libx", "E: Unable to locate package libx"),
    (outside.last_error, "only words\n", "only words"), (outside.last_error, "", "it says nothing"),
    (outside.last_error,
     f"error: https://index.example.org/x not there, see {place.ROOT}/build/lab/log",
     "error: (the registry) not there, see build/lab/log"),
    (outside.shown, place.ROOT / "build" / "x.log", "build/x.log"),
    (outside.shown, "/else/x", "/else/x"),
    (probe._complaint, LD % ("LD_PRELOAD", "invalid ELF header"), "invalid ELF header"),
    (probe._complaint, LD % ("--preload", "wrong ELF class: ELFCLASS32"),
     "wrong ELF class: ELFCLASS32"),
    (probe._complaint, "true: libc.so.6: version `GLIBC_2.38' not found (required by x.so)",
     "it needs glibc 2.38 or newer"), (probe._complaint, "", ""),
    (bases._glibc_version, "libc6 2.43-7, libgcc-s1 16.2.0-4", "2.43"),
    (bases._glibc_version, "libgcc 16", "")])
def test_what_others_write_is_read(read, text, found):
    assert read(text) == found


@pytest.mark.parametrize("read, text, reason", [
    (builds.mimalloc_number, "#define MI_MALLOC 1", "no version"),
    (builds.tcmalloc_files, '"c_src/one.cc"', "build script"),
    (builds.hardened_switches, "ONE=1\n", "switches"),
    (lambda text: crates.locked(text, "mimalloc"), LOCK, "resolved no mimalloc"),
    (crates.check_cargo, "cargo 1.65.0", "cargo 1.70"), (crates.check_cargo, "", "cargo 1.70")])
def test_what_cannot_be_read_is_a_reason(read, text, reason):
    with pytest.raises(Skip, match=reason):
        read(text)


# Running things


def test_run_tells_the_last_error_and_the_log(lab):
    script(lab, "breaks", 'echo "a.c:1: error: odd"; echo "make: *** [all] Error 2"; exit 2')
    with pytest.raises(Skip, match=r"^breaks failed: a\.c:1: error: odd \(log: .*build\.log\)$"):
        outside.run(["breaks", "x y"], lab / "p" / "build.log")
    assert (lab / "p" / "build.log").read_text().startswith("$ breaks 'x y'\n")
    with pytest.raises(Skip, match="missing does not start: No such file"):
        outside.run(["missing"], lab / "log")


def test_run_ends_a_command_that_does_not_end_and_its_children(lab):
    script(lab, "waits", f"sleep 6000 & echo $! > {lab}/child; wait")
    with pytest.raises(Skip, match="waits: no end after 3 s"):
        outside.run(["waits"], lab / "log", seconds=3)
    child = int((lab / "child").read_text())
    while process.lives(child):  # it has been told to end
        os.sched_yield()


def test_foreign_words_do_not_reach_a_build(lab, monkeypatch):
    for name in ("LD_PRELOAD", "CFLAGS", "GLIBC_TUNABLES", "MAKEFLAGS"):
        monkeypatch.setenv(name, "")
    script(lab, "tells", "env")
    text = outside.output(["tells"], MORE="1")
    assert "MORE=1" in text and "LC_ALL=C" in text
    assert not re.search(r"^(LD_PRELOAD|CFLAGS|GLIBC_TUNABLES|MAKEFLAGS)=", text, re.MULTILINE)


def test_missing_tools_are_for_root_to_install(lab, monkeypatch):
    with pytest.raises(Skip, match="needs cargo cmake; .*'apt-get install cargo-web cmake ca-cert"):
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
    assert updated.endswith("update") and "--no-install-recommends" in installed
    assert installed.endswith(" install cargo")
    assert told == ["installing cargo"]


# What is made once


def test_made_once_until_something_changes_and_a_broken_build_leaves_no_stamp(lab):
    folder, calls = Folder("p"), []

    def make():
        calls.append(1)
        (folder.path / "lib.so").write_text(str(len(calls)))
        if len(calls) == 5:
            raise Skip("broken")
        return {"library": "lib.so", "version": str(len(calls))}

    def made(recipe="r/1", build=True, rebuild=False):
        return outside.made(folder, recipe, build, rebuild, print, make)["version"]

    with pytest.raises(Skip, match="not built yet"):
        made(build=False)
    assert made() == made() == made(build=False) == "1" and made(rebuild=True) == "2"
    (folder.path / "lib.so").write_text("touched by someone")
    assert made() == "3" and made("r/2") == "4" and not folder.work.exists()
    with pytest.raises(Skip, match="broken"):
        made(rebuild=True)
    with pytest.raises(Skip, match="not built yet"):
        made(build=False)
    (folder.path / "stamp.json").write_text("{")
    assert folder.stamp("r/1") is None


def test_one_lab_at_a_time(lab):
    told, order, is_told = [], [], threading.Event()

    def other():
        with outside.lock(lambda text: (told.append(text), is_told.set())):
            order.append("other")

    with outside.lock(told.append):
        thread = threading.Thread(target=other)
        thread.start()
        is_told.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "other"] and "another lab" in told[0]
