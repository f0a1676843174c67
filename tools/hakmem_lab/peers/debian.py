# SPDX-License-Identifier: MIT
"""Peers as Debian packages them: the system's release, and the packages of Debian's unstable suite (sid), which are
unpacked beside the system and never installed."""
from __future__ import annotations

import functools
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from .. import place
from . import outside
from .outside import Folder, Skip


@dataclass(frozen=True)
class Package:
    names: tuple[str, ...]  # the releases name it differently: the first that there is
    library: str  # a regular expression for the file's name


SYSTEM = {
    "mimalloc-debian": Package(("libmimalloc2.0", "libmimalloc3"), r"libmimalloc\.so\.[\d.]+"),
    "jemalloc-debian": Package(("libjemalloc2",), r"libjemalloc\.so\.2"),
    "gperftools-debian": Package(("libtcmalloc-minimal4", "libtcmalloc-minimal4t64"),
                                 r"libtcmalloc_minimal\.so\.[\d.]+"),
    "scudo": Package(tuple(f"libclang-rt-{version}-dev" for version in (14, 16, 17, 18, 19, 20)),
                     rf"libclang_rt\.scudo_standalone-{os.uname().machine}\.so"),
}
SID = {
    "mimalloc-sid": Package(("libmimalloc3",), r"libmimalloc\.so\.[\d.]+"),
    "gperftools-sid": Package(("libtcmalloc-minimal4t64",), r"libtcmalloc_minimal\.so\.[\d.]+"),
    "rpmalloc-sid": Package(("librpmalloc1",), r"librpmalloc\.so\.[\d.]+"),
}
_KEY_TROUBLE = re.compile(r"pubkey|public key|EXPKEYSIG|REVKEYSIG|not signed|no keys", re.I)
GLIBC = ("libc6", "libgcc-s1", "libstdc++6")


def _pick(paths, pattern):
    """The first path whose file name fits, with symbolic links followed."""
    for path in sorted(paths):
        if re.fullmatch(pattern, os.path.basename(path)) and os.path.isfile(path):
            return os.path.realpath(path)
    raise Skip("the package has no library as expected")


def _installed(package, architecture):
    state = outside.output(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", f"{package}:{architecture}"])
    status, _, version = state.partition(" ")
    return version if status == "installed" else ""


def package_version(package):
    """"libc6 2.36-9" as installed; "" if it is not, or this is no Debian system."""
    architecture = outside.output(["dpkg", "--print-architecture"]).strip()
    version = _installed(package, architecture) if architecture else ""
    return f"{package} {version}" if version else ""


def packaged(name, install, progress):
    """(library, "package version") of the system's own package, installed if need be."""
    package = SYSTEM[name]
    architecture = outside.output(["dpkg", "--print-architecture"]).strip()
    if not architecture:
        raise Skip("not a Debian system")
    here = [word for word in package.names if _installed(word, architecture)]
    if not here and not install:
        raise Skip(f"not installed: 'apt-get install {package.names[0]}' as root")
    if not here:
        with outside.lock(progress):
            outside.install([package.names], f"{package.names[0]} is not installed", progress)
        here = [word for word in package.names if _installed(word, architecture)]
    if not here:
        raise Skip("apt-get installed no " + package.names[0])
    files = outside.output(["dpkg", "-L", f"{here[0]}:{architecture}"]).splitlines()
    return _pick(files, package.library), f"{here[0]} {_installed(here[0], architecture)}"


def mirror(targets):
    """The address of Debian's archive among apt's own targets, as "address|origin|label" a line; "" if none."""
    for line in targets.splitlines():
        address, _, rest = line.partition("|")
        if rest == "Debian|Debian":
            return address
    return ""


def _keyring(root=Path("/")):
    for path in sorted((root / "usr" / "share" / "keyrings").glob("debian-archive-keyring.*")):
        return path
    raise Skip("there are no keys of Debian's archive (package debian-archive-keyring)")


def _newer_keyring(root):
    """Debian's keys as the system's own suites carry them now: unstable may be signed by keys that are younger than
    what is installed."""
    outside.run(["apt-get", "-q", "download", "debian-archive-keyring"], outside.apt_log(), cwd=root)
    for archive in root.glob("debian-archive-keyring_*.deb"):
        outside.run(["dpkg-deb", "-x", archive, root], outside.apt_log())
    return _keyring(root)


def _options(root):
    """An apt of its own: no list, cache, pin or package state of the system is read or changed."""
    settings = {"Dir::State": root / "state", "Dir::State::status": root / "status", "Dir::Cache": root / "cache",
                "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "",
                "Dir::Etc::sourcelist": root / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
                "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
                "APT::Sandbox::User": "root", "APT::Update::Error-Mode": "any", "Acquire::Languages": "none",
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _address():
    """The mirror of Debian that the system's own apt uses."""
    if shutil.which("apt-get") is None:
        raise Skip("not a Debian system")
    ask = ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(ORIGIN)|$(LABEL)"]
    if not outside.output(ask).strip() and os.geteuid() == 0:
        outside.update_lists()  # a fresh system has no lists yet
    address = mirror(outside.output(ask))
    if not address:
        raise Skip("apt knows no mirror of Debian")
    return address


def _update(root, keyring, address):
    """The lists of sid, which must be signed by Debian's keys."""
    (root / "sources.list").write_text(f"deb [signed-by={keyring}] {address} unstable main\n")
    outside.run(["apt-get", "-q", *_options(root), "update"], outside.apt_log(), seconds=600)


@functools.lru_cache(maxsize=1)
def _sid(root):
    """apt's options for sid once its lists are fetched, or the reason why they cannot be: once a run, either way."""
    try:
        address = _address()
        for name in ("state/lists/partial", "cache/archives/partial"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "status").touch()
        try:
            _update(root, _keyring(), address)
        except Skip as reason:
            if not _KEY_TROUBLE.search(str(reason)):
                raise
            _update(root, _newer_keyring(root), address)
    except Skip as reason:
        return reason
    return _options(root)


def _unpack(folder, packages, progress):
    """Fetches packages of sid and unpacks them into the folder. Returns their versions."""
    progress(f"fetching {' '.join(packages)} from Debian's unstable suite")
    options = _sid(place.PEERS / "sid")
    if isinstance(options, Skip):
        raise options
    outside.run(["apt-get", "-q", *options, "download", *packages], folder.log, cwd=folder.work)
    versions, root = [], folder.work / "root"
    for archive in sorted(folder.work.glob("*.deb")):
        outside.run(["dpkg-deb", "-x", archive, root], folder.log)
        versions.append(outside.output(["dpkg-deb", "-W", "--showformat=${Package} ${Version}", archive]))
    shutil.rmtree(folder.path / "root", ignore_errors=True)
    os.replace(root, folder.path / "root")
    return versions


def unstable(name, packages, pattern, build, rebuild, progress):
    """The stamp of packages of sid; "library" is the file that fits the pattern."""
    folder = Folder(name)

    def make():
        started = time.monotonic()
        versions = _unpack(folder, packages, progress)
        library = _pick((str(path) for path in (folder.path / "root").rglob("*")), pattern)
        return {"library": os.path.relpath(library, folder.path), "version": ", ".join(versions),
                "flags": "as packaged: " + ", ".join(versions), "seconds": round(time.monotonic() - started)}

    recipe = f"sid/1 {' '.join(packages)}"
    return outside.made(folder, recipe, build, rebuild, progress, make, word="fetched")
