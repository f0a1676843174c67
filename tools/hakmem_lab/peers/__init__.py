# SPDX-License-Identifier: MIT
"""The allocators that hakmem is measured against, found or built.

A peer is either there, with the version that its loaded library tells, or skipped with a reason; it never stops the
lab. Newest releases are built once under build/lab/peers from the sources that Rust's crates carry."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from .. import errors, place
from . import bases, builds, debian, outside, probe
from .bases import BASES, Base, find_base
from .builds import ahead
from .outside import Skip

__all__ = ["BASES", "Base", "DEFAULT", "Found", "MUSL", "Peer", "QUICK", "ahead", "catalogue", "find", "find_base", "user_libs"]


@dataclass(frozen=True)
class Peer:
    name: str  # what the user types
    label: str  # what people read, without a version
    origin: str  # system | debian | newest | subject | user
    about: str
    base: str = "system"  # "newest" or "musl" if it runs on that only: find_base(peer.base)


@dataclass
class Found:
    peer: Peer
    library: str = ""  # what is preloaded; "" for the C library's own malloc
    version: str = ""  # as the running library tells; "(of the build)" if it cannot and the sources did
    label: str = ""  # "mimalloc 3.2.8"
    sha256: str = ""
    skip: str = ""  # why it cannot take part; "" if it can
    flags: str = ""  # how it was built: compiler and flags, or the package
    env: dict[str, str] = field(default_factory=dict)  # to be set when running on it, as its own project says


_PEERS = (
    Peer("hakmem", "hakmem", "subject", "this project's release build"),
    Peer("hakmem-hardened", "hakmem hardened", "subject", "this project's hardened build"),
    Peer("glibc", "glibc", "system", "the system's own malloc"),
    Peer("glibc-newest", "glibc", "newest", "malloc of the newest glibc, run by its own loader", base="newest"),
    Peer("mimalloc", "mimalloc", "newest", "newest mimalloc 3 of the crates, its own release build"),
    Peer("mimalloc2", "mimalloc", "newest", "newest mimalloc 2 of the crates, its own release build"),
    Peer("snmalloc", "snmalloc", "newest", "newest snmalloc, its own release build"),
    Peer("jemalloc", "jemalloc", "newest", "newest jemalloc, its own release build"),
    Peer("tcmalloc", "Google tcmalloc", "newest", "Google's TCMalloc with per-CPU caches, newest of the crates"),
    Peer("hardened_malloc", "hardened_malloc", "newest", "GrapheneOS's hardened allocator, newest of the crates"),
    Peer("hardened_malloc-light", "hardened_malloc light", "newest", "the same with its light configuration"),
    Peer("scudo", "Scudo", "debian", "LLVM's hardened allocator, of clang's runtime as the system's Debian packages it"),
    Peer("mimalloc-debian", "mimalloc", "debian", "mimalloc as the system's Debian packages it"),
    Peer("jemalloc-debian", "jemalloc", "debian", "jemalloc as the system's Debian packages it"),
    Peer("gperftools-debian", "gperftools tcmalloc", "debian", "the older tcmalloc as the system's Debian has it"),
    Peer("mimalloc-sid", "mimalloc", "newest", "mimalloc as Debian's unstable suite packages it"),
    Peer("gperftools-sid", "gperftools tcmalloc", "newest", "the older tcmalloc of Debian's unstable suite",
         base="newest"),
    Peer("rpmalloc-sid", "rpmalloc", "newest", "rpmalloc of Debian's unstable suite", base="newest"),
    Peer("musl", "musl", "system", "malloc of the C library musl", base="musl"),
    Peer("mimalloc-musl", "mimalloc", "newest", "newest mimalloc 3 of the crates, built with musl", base="musl"),
)

# What a run takes if nothing is said, in this order. The subject is not among them. Of mimalloc three take part: the
# crates' newest, built as its own project says; a still newer one as Debian's unstable suite packages it; the system's.
DEFAULT = ("glibc", "glibc-newest", "mimalloc", "mimalloc-sid", "snmalloc", "jemalloc", "tcmalloc", "mimalloc-debian",
           "jemalloc-debian", "gperftools-debian")
MUSL = ("musl", "mimalloc-musl")  # the same on musl
QUICK = ("glibc", "mimalloc", "snmalloc", "jemalloc", "tcmalloc", "gperftools-debian")


def catalogue():
    return {peer.name: peer for peer in _PEERS}


def user_libs(words):
    """--lib NAME=PATH, any number of them."""
    libs = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not path or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise errors.UsageError(f"--lib wants NAME=PATH (--lib name=path/lib.so), NAME of letters, digits, '.', "
                                    f"'_' and '-': '{word}'")
        if name in catalogue() or name in libs:
            raise errors.UsageError(f"--lib: the name '{name}' is taken; choose another than"
                                    f" {' '.join(sorted({*catalogue(), *libs}))}")
        libs[name] = path
    return libs


def short_version(version):
    """The part of a version that fits a label: "5.3.1" of "5.3.1-0-g81034ce1f…"."""
    found = re.search(r"\d{4}-\d\d-\d\d|\d+(\.\d+)+", version)
    return found.group(0) if found else version


def _label(peer, version):
    suffix = " (sid)" if peer.name in debian.SID else " (Debian)" if peer.origin == "debian" else ""
    return f"{peer.label} {short_version(version)}".rstrip() + suffix


def _found(peer, base, library="", version="", flags="", env=()):
    """Everything that only the loaded library can tell. `version` stands in where it tells none."""
    said = probe.report(base, library, dict(env))
    if not library:
        version = said["glibc"] or base.version
    elif said.get("version"):
        version = said["version"]
    else:
        version = f"{version or 'unknown'} (of the build)"
    return Found(peer, library=library, version=version, label=_label(peer, version),
                 sha256=outside.sha256(library or said["malloc"]), flags=flags, env=dict(env))


def _subject(peer, base):
    hardened = peer.name == "hakmem-hardened"
    library = place.HARDENED if hardened else place.HAKMEM
    if not library.is_file():
        raise Skip(f"{outside.shown(library)} is not there; './hakmem build{' hardened' * hardened}' makes it")
    return _found(peer, base, os.path.realpath(library), flags=f"{'hardened' if hardened else 'release'} preset")


def _find(peer, base, build, progress, rebuild):
    name = peer.name
    if peer.origin == "subject":
        return _subject(peer, base)
    if name in builds.RECIPES:
        stamp = builds.build(name, build, rebuild, progress)
        library = outside.Folder(name).path / stamp["library"]
        return _found(peer, base, str(library), stamp["version"], stamp["flags"], builds.RECIPES[name].env)
    if name in debian.SYSTEM:
        library, package = debian.packaged(name, build, progress)
        return _found(peer, base, library, package, f"as packaged: {package}")
    if name in debian.SID:
        package = debian.SID[name]
        stamp = debian.unstable(name, package.names, package.library, build, rebuild, progress)
        library = outside.Folder(name).path / stamp["library"]
        return _found(peer, base, str(library), stamp["version"], stamp["flags"])
    package = base.package or debian.package_version("musl" if base.name == "musl" else "libc6")
    return _found(peer, base, flags=f"as packaged: {package}" if package else "")


def _user(name, path, base):
    """A library of the user's own. What is wrong with it is the user's to mend, so it is an error and no skip."""
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isfile(path):
        raise errors.UsageError(f"--lib {name}: there is no file {path}")
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            raise errors.UsageError(f"--lib {name}: {path} is not a shared library")
    try:
        found = _found(Peer(name, name, "user", "given with --lib"), base, os.path.realpath(path), "")
    except Skip as reason:
        raise errors.UsageError(f"--lib {name}: {reason}") from None
    found.version = found.version.removesuffix(" (of the build)")
    found.label = name if found.version == "unknown" else f"{name} ({short_version(found.version)})"
    return found


def find(name, *, build=True, progress=lambda text: None, rebuild=False, libs=None, base=None):
    """An allocator by its name, ready to be preloaded on `base` (if none is given: the peer's own).

    With build=False nothing is fetched, built or installed. `progress` is told what takes long. Never raises for a
    peer that cannot be had: then `skip` says why."""
    if libs and name in libs:
        return _user(name, libs[name], base or bases.system())
    peer = catalogue().get(name)
    if peer is None:
        raise errors.unknown("allocator", name, {**catalogue(), **(libs or {})})
    try:
        again = rebuild and name == "glibc-newest"
        base = base or find_base(peer.base, build=build, progress=progress, rebuild=again)
        if base.skip:
            raise Skip(base.skip)
        return _find(peer, base, build, progress, rebuild)
    except Skip as reason:
        return Found(peer, label=peer.label, skip=str(reason))
    except OSError as problem:
        return Found(peer, label=peer.label, skip=outside.last_error(str(problem)))
