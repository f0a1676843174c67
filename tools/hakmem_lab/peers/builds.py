# SPDX-License-Identifier: MIT
"""The newest releases, each built as its own project builds a release, into a library that can be preloaded and whose
malloc is its own function, with no call in between."""
from __future__ import annotations

import contextlib
import re
import shlex
import time
from collections import Counter
from dataclasses import dataclass
from typing import Callable

from .. import place
from . import crates, outside
from .outside import Folder, Skip


@dataclass(frozen=True)
class Built:
    library: str  # path, in the work folder
    version: str  # as the sources name it


@dataclass(frozen=True)
class Recipe:
    crate: str
    tools: tuple[str, ...]
    seconds: int  # about, on two cores
    build: Callable[[crates.Crate, Folder], Built]
    env: tuple[tuple[str, str], ...] = ()  # what its own project says to set when running on it
    revision: int = 1  # raise it when the way it is built changes: then it is built again


def _cmake(folder, source, target, *options):
    build = folder.work / "build"
    outside.run(["cmake", "-S", source, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release", *options],
                folder.log)
    outside.run(["cmake", "--build", build, "--target", target, "--verbose", "-j", outside.jobs()], folder.log)
    return build


# The crate leaves out the two files of mimalloc's cmake folder that its CMakeLists.txt reads. These say the same, and
# then mimalloc's own file chooses the flags.
_MI_VERSION = """set(mi_version_major {major})
set(mi_version_minor {minor})
set(mi_version_patch {patch})
set(mi_version {major}.{minor})
"""
_MI_JOIN = """function(join_paths result first)
  set(${result} "${first}/${ARGN}" PARENT_SCOPE)
endfunction()
"""


def mimalloc_number(header):
    """(major, minor, patch) from mimalloc.h, where 30302 is 3.3.2."""
    found = re.search(r"#define\s+MI_MALLOC_VERSION\s+(\d+)(\d\d)(\d\d)\b", header)
    if found is None:
        raise Skip("mimalloc.h has no version")
    return tuple(int(part) for part in found.groups())


def _mimalloc(tree, *options):
    def build(crate, folder):
        source = crate.folder / "c_src" / "mimalloc" / tree
        if not source.is_dir():
            raise Skip(f"{crate} carries no mimalloc {tree}")
        major, minor, patch = mimalloc_number((source / "include" / "mimalloc.h").read_text())
        stand_ins = {"mimalloc-config-version": _MI_VERSION.format(major=major, minor=minor, patch=patch),
                     "JoinPaths": _MI_JOIN}
        (source / "cmake").mkdir(exist_ok=True)
        for name, text in stand_ins.items():
            path = source / "cmake" / f"{name}.cmake"
            if not path.exists():
                path.write_text(text)
        build = _cmake(folder, source, "mimalloc", "-DMI_OVERRIDE=ON", "-DMI_BUILD_SHARED=ON",
                       "-DMI_BUILD_STATIC=OFF", "-DMI_BUILD_OBJECT=OFF", "-DMI_BUILD_TESTS=OFF", *options)
        return Built(build / "libmimalloc.so", f"{major}.{minor}.{patch}")

    return build


def _snmalloc(crate, folder):
    """Packed from snmalloc's own repository, so the crate's version and commit are its own."""
    build = _cmake(folder, crate.folder / "upstream", "snmallocshim", "-DSNMALLOC_BUILD_TESTING=OFF",
                   "-DSNMALLOC_STATIC_LIBRARY=OFF")
    return Built(build / "libsnmallocshim.so", f"{crate.version}, commit {crate.commit[:12] or 'unknown'}")


def _jemalloc(crate, folder):
    """The configure script lies beside the sources. Plain configure is jemalloc's release build; its -g3 goes,
    because every file is compiled twice and nobody reads it."""
    source = crate.folder / "jemalloc"
    (source / "configure").write_bytes((crate.folder / "configure" / "configure").read_bytes())
    version = crate.version.partition("+")[2]
    outside.run(["sh", "configure", f"--with-version={version}", "--disable-static", "--disable-doc"], folder.log,
                cwd=source, EXTRA_CFLAGS="-g0", EXTRA_CXXFLAGS="-g0")
    outside.run(["make", "-j", outside.jobs(), "build_lib_shared"], folder.log, cwd=source)
    return Built(source / "lib" / "libjemalloc.so.2", version)


# Google's TCMalloc is built by Bazel, whose files the crate does not carry. -DNDEBUG, frame pointers (its sampling
# walks them) and pages of 8 KiB are those of its default target with "-c opt"; -O3 (CMake's Release) where that has
# -O2, to be on the generous side. Initial-exec TLS is what the static linking that it expects would give. The sources
# are used as they are, without the crate's patch, which asks for huge pages everywhere. Headers compiled beforehand
# save a third of the time.
_TCMALLOC = """cmake_minimum_required(VERSION 3.16)
project(tcmalloc CXX ASM)
find_package(Threads REQUIRED)
add_library(absl OBJECT
{absl})
add_library(tcmalloc SHARED $<TARGET_OBJECTS:absl>
{own})
foreach(part absl tcmalloc)
  target_include_directories(${{part}} PRIVATE c_src/abseil-cpp c_src/tcmalloc)
  target_compile_definitions(${{part}} PRIVATE TCMALLOC_INTERNAL_8K_PAGES)
  target_compile_options(${{part}} PRIVATE -w -fno-omit-frame-pointer -ftls-model=initial-exec)
  set_target_properties(${{part}} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
endforeach()
target_precompile_headers(absl PRIVATE <algorithm> <functional> <string>)
target_precompile_headers(tcmalloc PRIVATE <tcmalloc/static_vars.h>)
target_link_libraries(tcmalloc PRIVATE Threads::Threads -Wl,-z,defs)
"""


def tcmalloc_files(build_script):
    """The C++ files that the crate compiles, with TCMalloc's own malloc in place of the crate's bridge to it."""
    files = set(re.findall(r'"(c_src/[^"]+\.(?:cc|S))"', build_script))
    files = {name for name in files if "bridge" not in name}
    if len(files) < 50:
        raise Skip("the crate's build script does not list its files as expected")
    return sorted(files | {"c_src/tcmalloc/tcmalloc/tcmalloc.cc"})


def changelog_date(changelog, version):
    """The day of a release in the crate's change log; "" if it is not there."""
    found = re.search(rf"^## \[{re.escape(version)}\].* (\d{{4}}-\d\d-\d\d)\s*$", changelog, re.MULTILINE)
    return found.group(1) if found else ""


def _tcmalloc(crate, folder):
    """TCMalloc has no releases; what is recorded is the day of the crate that took it."""
    files = tcmalloc_files((crate.folder / "build.rs").read_text())
    absl = [name for name in files if name.startswith("c_src/abseil-cpp/")]
    own = [name for name in files if name not in absl]
    text = _TCMALLOC.format(absl="\n".join(f"  {name}" for name in absl), own="\n".join(f"  {name}" for name in own))
    (crate.folder / "CMakeLists.txt").write_text(text)
    build = _cmake(folder, crate.folder, "tcmalloc")
    day = changelog_date((crate.folder / "CHANGELOG.md").read_text(), crate.version)
    return Built(build / "libtcmalloc.so", f"{day or 'unknown day'}, {crate}")


# hardened_malloc is built by a Makefile that the crate does not carry; the switches it would hand on are in a file of
# the crate's. Flags are the Makefile's, -march=native among them. Its C is C23, of which older compilers know all but
# alignas.
_HARDENED = """cmake_minimum_required(VERSION 3.16)
project(hardened_malloc C CXX)
set(CMAKE_C_FLAGS_RELEASE -O3)
set(CMAKE_CXX_FLAGS_RELEASE -O3)
file(GLOB files vendor/hardened-malloc/*.c)
add_library(hardened_malloc SHARED ${{files}} vendor/hardened-malloc/new.cc)
target_include_directories(hardened_malloc PRIVATE vendor/hardened-malloc vendor/hardened-malloc/include)
target_compile_definitions(hardened_malloc PRIVATE _GNU_SOURCE
{switches})
target_compile_options(hardened_malloc PRIVATE -w -pipe -flto -fPIC -fvisibility=hidden -fno-plt
  -fstack-clash-protection -fstack-protector-strong -march=native
  $<$<COMPILE_LANGUAGE:C>:-std=c2x -include stdalign.h> $<$<COMPILE_LANGUAGE:CXX>:-std=c++17 -fsized-deallocation>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(hardened_malloc PRIVATE -fcf-protection)
endif()
target_link_options(hardened_malloc PRIVATE -O3 -flto -march=native
  -Wl,-O1,--as-needed,-z,defs,-z,relro,-z,now,-z,nodlopen,-z,text)
"""


def hardened_switches(text):
    """NAME=VALUE of each line that is no comment."""
    switches = re.findall(r"^\s*(\w+)\s*=\s*(\w+)", text, re.MULTILINE)
    if len(switches) < 10:
        raise Skip("the crate's file of switches is not as expected")
    return [f"{name}={value}" for name, value in switches]


def _hardened(config):
    def build(crate, folder):
        path = crate.folder / f"config-{config}.conf"
        if not path.is_file():
            raise Skip(f"{crate} carries no configuration '{config}'")
        switches = "\n".join(f"  {switch}" for switch in hardened_switches(path.read_text()))
        (crate.folder / "CMakeLists.txt").write_text(_HARDENED.format(switches=switches))
        build = _cmake(folder, crate.folder, "hardened_malloc")
        return Built(build / "libhardened_malloc.so", crate.version)

    return build


_CMAKE_TOOLS = ("cargo", "cmake", "make", "cc", "c++")
RECIPES = {
    "mimalloc": Recipe("libmimalloc-sys", _CMAKE_TOOLS, 10, _mimalloc("v3")),
    "mimalloc-musl": Recipe("libmimalloc-sys", (*_CMAKE_TOOLS, "musl-gcc"), 10,
                            _mimalloc("v3", f"-DCMAKE_TOOLCHAIN_FILE={place.MUSL}", "-DMI_LIBC_MUSL=ON",
                                      "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--as-needed")),  # libatomic is glibc's
    "mimalloc2": Recipe("libmimalloc-sys", _CMAKE_TOOLS, 10, _mimalloc("v2")),
    "snmalloc": Recipe("snmalloc-sys", _CMAKE_TOOLS, 10, _snmalloc),
    "jemalloc": Recipe("tikv-jemalloc-sys", ("cargo", "make", "cc", "c++"), 40, _jemalloc),
    # Its caches are per CPU only if it can register restartable sequences itself, and from 2.35 on glibc does that
    # before it. With glibc's switched off it has its fast path; else it falls back to per-thread caches.
    "tcmalloc": Recipe("libtcmalloc-sys", _CMAKE_TOOLS, 60, _tcmalloc,
                       env=(("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),)),
    "hardened_malloc": Recipe("hardened-malloc-sys", _CMAKE_TOOLS, 15, _hardened("default")),
    "hardened_malloc-light": Recipe("hardened-malloc-sys", _CMAKE_TOOLS, 15, _hardened("light")),
}


def compile_flags(log):
    """The flags that matter of most compile commands in a log: how the library was really built."""
    seen = Counter()
    for line in reversed(log.splitlines()):
        if " -c " in line and " -o " in line and not line.startswith("$ "):
            with contextlib.suppress(ValueError):  # a line with an odd quotation mark is no command
                words = [word for word in shlex.split(line) if re.match(r"-(O|D|f|m|std)", word)]
                seen[" ".join(word for word in words if "EXPORT" not in word)] += 1
    return seen.most_common(1)[0][0] if seen else ""


def ahead(names):
    """What is still to be built of these peers, and for how long, in words; "" if nothing is."""
    wanted = [name for name in names if name in RECIPES
              and Folder(name).stamp(f"{name}/{RECIPES[name].revision}") is None]
    seconds = sum(RECIPES[name].seconds for name in wanted)
    if not wanted:
        return ""
    return f"to be built first, once: {', '.join(wanted)}; about {max(1, round(seconds / 60))} min on two processors"


def build(name, build_it, rebuild, progress):
    """The stamp of a newest release, built if it is not yet."""
    recipe, folder = RECIPES[name], Folder(name)

    def make():
        outside.need(recipe.tools, progress)
        started = time.monotonic()
        progress(f"{name}: fetching the sources")
        crate = crates.fetch(recipe.crate, folder)
        progress(f"{name}: building, about {recipe.seconds} s")
        built = recipe.build(crate, folder)
        library = folder.keep(built.library, f"lib{name}.so")
        compiler = outside.output(["cc", "--version"]).partition("\n")[0]
        flags = f"{compiler}: {compile_flags(folder.log.read_text(errors='replace'))}"
        return {"library": library.name, "version": built.version, "crate": str(crate), "checksum": crate.checksum,
                "flags": flags, "seconds": round(time.monotonic() - started)}

    return outside.made(folder, f"{name}/{recipe.revision}", build_it, rebuild, progress, make)
