# SPDX-License-Identifier: MIT
"""Finding peers and bases: built, packaged, the user's own, or skipped with a reason."""
import io
import os
import re
import tarfile
from pathlib import Path

import pytest
from fake_system import DEBIAN, fake_which_malloc, lab, script, some_library  # noqa: F401 (lab is a fixture)
from hakmem_lab import peers, place
from hakmem_lab.errors import UsageError
from hakmem_lab.peers import bases, debian, outside

# Finding

MIMALLOC = {"c_src/mimalloc/v3/include/mimalloc.h": "#define MI_MALLOC_VERSION 30302\n"}


def crate_archive(lab, name, version, files):
    """A .crate as the registry would give it, in cargo's cache; its checksum."""
    folder = lab / "cargo" / "registry" / "cache" / "somewhere"
    folder.mkdir(parents=True)
    path = folder / f"{name}-{version}.crate"
    with tarfile.open(path, "w:gz") as tar:
        for file, text in files.items():
            info = tarfile.TarInfo(f"{name}-{version}/{file}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return outside.sha256(path)


def with_tools(lab, checksum, crate="libmimalloc-sys", version="0.1.49", library="libmimalloc.so"):
    block = f'[[package]]\nname = "{crate}"\nversion = "{version}"\nchecksum = "{checksum}"\n'
    (lab / "lock").write_text(block)
    script(lab, "cargo", f'case $1 in --version) echo cargo 1.90.0;; generate-lockfile) cp {lab}/lock Cargo.lock;; '
                         'fetch) echo "error: edition of another crate" >&2; exit 101;; esac')
    script(lab, "cmake", 'if [ "$1" = -S ]; then mkdir "$4"; ls "$2/cmake"; cat "$2/CMakeLists.txt"; exit 0; fi\n'
                         'echo "cc -O3 -Wall -DNDEBUG -fPIC -o x.o -c x.c"\n'
                         f'cp {some_library()} "$2/{library}"')
    for name in ("make", "c++"):
        script(lab, name, "exit 1")
    script(lab, "cc", "echo cc 12.2.0; echo more")


def test_a_newest_release_is_built_once(lab):
    """Also: an archive that cargo fetched serves although that cargo then stumbles over it."""
    with_tools(lab, crate_archive(lab, "libmimalloc-sys", "0.1.49", MIMALLOC))
    fake_which_malloc(lab)
    told = []
    found = peers.find("mimalloc", progress=told.append)
    assert found.skip == "" and found.label == "mimalloc 3.3.2" and found.version == "3.3.2 (of the build)"
    assert found.flags == "cc 12.2.0: -O3 -DNDEBUG -fPIC"
    assert found.library == str(lab / "peers" / "mimalloc" / "libmimalloc.so")
    assert found.sha256 == outside.sha256(some_library())
    assert "JoinPaths.cmake\nmimalloc-config-version.cmake" in (lab / "peers" / "mimalloc" / "build.log").read_text()
    assert [text.partition(",")[0] for text in told] == ["mimalloc: fetching the sources", "mimalloc: building"]
    script(lab, "cargo", "exit 1")
    assert peers.find("mimalloc", progress=told.append) == found and len(told) == 2


def test_a_spoiled_archive_is_not_used(lab):
    crate_archive(lab, "libmimalloc-sys", "0.1.49", MIMALLOC)
    with_tools(lab, "00")
    found = peers.find("mimalloc")
    assert re.match(r"cargo failed: error: edition of another crate \(log: .*mimalloc/build\.log\)$", found.skip)
    assert found.label == "mimalloc" and found.library == ""


def test_a_failing_build_is_a_reason(lab):
    with_tools(lab, crate_archive(lab, "libmimalloc-sys", "0.1.49", MIMALLOC))
    script(lab, "cmake", 'echo "x.c:1:2: error: no"; echo "gmake: *** [all] Error 2"; exit 2')
    assert re.match(r"cmake failed: x\.c:1:2: error: no \(log: .*mimalloc/build\.log\)$", peers.find("mimalloc").skip)
    assert peers.find("mimalloc2").skip == "libmimalloc-sys 0.1.49 carries no mimalloc v2"
    assert peers.find("mimalloc", build=False).skip == "not built yet"


def test_without_tools_everything_has_a_reason(lab, monkeypatch):
    """A system with no tool at all, not as root: no peer raises, each says why."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(place, "HAKMEM", lab / "nowhere.so")
    for name in peers.catalogue():
        found = peers.find(name)
        assert (name == "glibc") or found.skip, name
    assert "needs cargo" in peers.find("snmalloc").skip
    assert peers.find("jemalloc-debian").skip == "not a Debian system"
    assert peers.find("glibc-newest").skip == peers.find_base("newest").skip == "not a Debian system"
    assert "./hakmem build" in peers.find("hakmem").skip


def test_malloc_must_be_the_librarys_own_and_programs_must_live(lab, monkeypatch):
    monkeypatch.setattr(place, "HAKMEM", Path(some_library()))
    fake_which_malloc(lab, "0.1.0", origin="/bin/true")
    assert re.match("malloc does not come from .* but from /bin/true", peers.find("hakmem").skip)
    fake_which_malloc(lab, "0.1.0")
    found = peers.find("hakmem")
    assert (found.skip, found.label, found.version) == ("", "hakmem 0.1.0", "0.1.0")
    for text, reason in (("kill -SEGV $$", "a small program that runs on it dies of SIGSEGV"),
                         ("echo nonsense", "which_malloc says nothing that can be read")):
        script(lab, "which_malloc", text, "programs")
        assert peers.find("hakmem").skip == reason


def test_a_packaged_peer(lab):
    library = lab / "libjemalloc.so.2"
    library.write_bytes(Path(some_library()).read_bytes())
    script(lab, "dpkg", f'[ "$1" = -L ] && printf "%s\\n" /etc {library} || echo amd64')
    script(lab, "dpkg-query", '[ "$4" = libjemalloc2:amd64 ] && printf "installed 5.3.0-1"')
    fake_which_malloc(lab, "5.3.0-0-g54eaed1")
    found = peers.find("jemalloc-debian")
    assert (found.skip, found.label, found.library) == ("", "jemalloc 5.3.0 (Debian)", str(library))
    assert found.flags == "as packaged: libjemalloc2 5.3.0-1"
    advice = "'apt-get install libmimalloc2.0' as root"
    assert peers.find("mimalloc-debian", build=False).skip == f"not installed: {advice}"
    assert advice in peers.find("mimalloc-debian").skip


# The user's own libraries


def test_user_libs():
    assert peers.user_libs(["mine=/a/b.so", "x-1=c=d.so"]) == {"mine": "/a/b.so", "x-1": "c=d.so"}
    for word in ("mine", "=x", "mine=", "a b=x", "a+b=x", "-a=x"):
        with pytest.raises(UsageError, match="--lib wants NAME=PATH"):
            peers.user_libs([word])
    for words in (["mimalloc=/x.so"], ["a=x", "a=y"]):
        with pytest.raises(UsageError, match="is taken"):
            peers.user_libs(words)


def test_a_users_library(lab):
    for version, label, known in (("1.2.3", "mine (1.2.3)", "1.2.3"), ("", "mine", "unknown")):
        fake_which_malloc(lab, version)
        found = peers.find("mine", libs={"mine": some_library()})
        assert (found.skip, found.label, found.version) == ("", label, known)


def test_what_is_wrong_with_a_users_library_is_an_error(lab):
    text, garbage = lab / "text.so", lab / "garbage.so"
    text.write_text("hello")
    garbage.write_bytes(b"\x7fELF" + bytes(100))
    blank = lab / "a b.so"
    blank.write_bytes(Path(some_library()).read_bytes())
    fake_which_malloc(lab, origin="/bin/true")
    for path, reason in ((lab / "none.so", "there is no file"), (text, "is not a shared library"),
                         (garbage, "mine: .*ELF"), (blank, "blank or a colon"),
                         (some_library(), "malloc does not come from")):
        with pytest.raises(UsageError, match=f"--lib mine: .*{reason}" if reason != "mine: .*ELF" else reason):
            peers.find("mine", libs={"mine": str(path)})


# Bases


def test_bases():
    system = peers.find_base("system")
    assert system.prefix("/x.so") == [] and system.env("/x.so") == {"LD_PRELOAD": "/x.so"} and system.env() == {}
    newest = bases.Base("newest", "glibc 2.43", loader="/ld.so", library_path="/a:/b")
    assert newest.prefix() == ["/ld.so", "--library-path", "/a:/b"]
    assert newest.prefix("/x.so")[3:] == ["--preload", "/x.so"] and newest.env("/x.so") == {}


def fake_apt(lab, cases):
    script(lab, "apt-get", f'echo "$@" >> {lab}/said; case "$*" in *indextargets*) echo "{DEBIAN}";; {cases} esac')


def sid_tools(lab):
    """An apt whose unstable suite has a libc6, and a dpkg-deb that unpacks it."""
    fake_apt(lab, "*download*) touch libc6_2.43.deb;;")
    script(lab, "dpkg-deb", 'case $1 in -x) d=$3/usr/lib/x-linux-gnu; mkdir -p $d; echo c > $d/libc.so.6; '
                            'echo l > $d/ld-linux-x.so.2;; -W) printf "libc6 2.43-7";; esac')


def test_the_newest_glibc(lab, monkeypatch):
    sid_tools(lab)
    monkeypatch.setattr(debian, "_keyring", lambda: Path("/keys.gpg"))
    base = peers.find_base("newest")
    assert (base.skip, base.label, base.package) == ("", "glibc 2.43", "libc6 2.43-7")
    assert base.loader.endswith("/ld-linux-x.so.2")
    assert base.library_path.split(":")[0] == os.path.dirname(base.loader)
    sources = (lab / "peers" / "sid" / "sources.list").read_text()
    assert sources == "deb [signed-by=/keys.gpg] http://c/debian/ unstable main\n"
    private = [line for line in (lab / "said").read_text().splitlines() if "indextargets" not in line]
    assert private and all(f"Dir::State={lab}/peers/sid/state" in line for line in private)
    (lab / "said").unlink()
    assert peers.find_base("newest", build=False) == base and not (lab / "said").exists()


def test_keys_that_are_too_old_are_renewed_from_the_systems_own_suites(lab, monkeypatch):
    sid_tools(lab)
    monkeypatch.setattr(debian, "_keyring", lambda: Path("/old.gpg"))
    monkeypatch.setattr(debian, "_newer_keyring", lambda root: Path("/new.gpg"))
    renewed = f"grep -q new {lab}/peers/sid/sources.list"
    fake_apt(lab, f'*update*) {renewed} || {{ echo "E: NO_PUBKEY 1"; exit 100; }};; '
                  '*download*) touch a.deb;;')
    assert peers.find_base("newest").label == "glibc 2.43"


def test_no_list_no_newest_glibc_and_asked_only_once(lab, monkeypatch):
    sid_tools(lab)
    monkeypatch.setattr(debian, "_keyring", lambda: Path("/keys.gpg"))
    fake_apt(lab, '*) echo "E: Some index files failed to download"; exit 100;;')
    assert peers.find_base("newest").skip.startswith("apt-get failed: E: Some index files failed to download (log: ")
    calls = (lab / "said").read_text()
    assert peers.find("mimalloc-sid").skip.startswith("apt-get failed: E: Some index")
    assert (lab / "said").read_text() == calls


def test_musl_is_there_or_says_what_it_needs(monkeypatch):
    found = peers.find_base("musl")
    assert found.skip or re.fullmatch(r"musl \d+\.\d+\.\d+", found.label)
    assert found.prefix("/x.so") == [] and found.env("/x.so") == {"LD_PRELOAD": "/x.so"}
    monkeypatch.setenv("PATH", "/nonexistent")
    assert peers.find_base("musl").skip == "needs musl-gcc and its C library; Debian's package is musl-tools"
