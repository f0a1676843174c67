#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs of musl, dynamic and in C++, built on Alpine for others: CMake, ninja and clang-format of PyPI's wheels for
musl, which pip brings into build/musl-programs once. Do they print and write the same with the library preloaded, and is it
in use?
usage: programs_test.py    (HAKMEM_LIB is preloaded)"""
import fcntl
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# The last versions whose wheels run on musl 1.2.3 (Debian 12); newer ones need 1.2.4.
WHEELS = ["cmake==3.27.9", "ninja==1.11.1.1", "clang-format==17.0.6"]
SOURCE = pathlib.Path(os.environ["HAKMEM_SOURCE"])
KEPT = pathlib.Path(os.environ["HAKMEM_BUILD"]).parent / "musl-programs"
CMAKE = KEPT / "cmake/data/bin/cmake"
NINJA = KEPT / "ninja/data/bin/ninja"
CLANG_FORMAT = KEPT / "clang_format/data/bin/clang-format"
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(many C)
foreach(i RANGE 1 400)
  file(WRITE ${CMAKE_BINARY_DIR}/f${i}.c.in "int f${i}(void) { return @i@; }\\n")
  configure_file(${CMAKE_BINARY_DIR}/f${i}.c.in f${i}.c)
  add_library(l${i} OBJECT ${CMAKE_BINARY_DIR}/f${i}.c)
  set_property(TARGET l${i} PROPERTY COMPILE_DEFINITIONS "A${i}=1;B=$<TARGET_PROPERTY:l${i},NAME>")
endforeach()
add_custom_target(print COMMAND ${CMAKE_COMMAND} -E echo printed VERBATIM)
"""
SCRIPT = """set(text "")
foreach(i RANGE 1 4000)
  string(APPEND text "key${i}=value ${i};")
  list(APPEND names "n${i}")
endforeach()
string(REGEX REPLACE "key([0-9]+)=" "<\\\\1>" text "${text}")
list(SORT names COMPARE NATURAL ORDER DESCENDING)
list(TRANSFORM names REPLACE "^n" "m" )
string(SHA256 sum "${text}${names}")
foreach(i RANGE 1 400)
  set(entry "{}")
  string(JSON entry SET "{}" "k${i}" "${i}")
  string(JSON value GET "${entry}" "k${i}")
  math(EXPR total "${total}+${value}")
endforeach()
message("${sum} ${total}")
"""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def bring():
    """The programs in KEPT."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = KEPT / ".whole"
        if whole.exists() and whole.read_text() == repr(WHEELS):
            return
        with tempfile.TemporaryDirectory() as folder:
            python = sys.executable
            if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode != 0:
                made = subprocess.run([python, "-m", "venv", f"{folder}/venv"], capture_output=True)
                if made.returncode != 0:
                    skip("no pip here (package python3-venv)")
                python = f"{folder}/venv/bin/python"
            run = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "-d", folder,
                                  "--only-binary=:all:", "--platform", "musllinux_1_1_x86_64", *WHEELS],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                skip(f"pip cannot bring {' '.join(WHEELS)}: {run.stderr.strip().splitlines()[-1:]}")
            for wheel in pathlib.Path(folder).glob("*.whl"):
                zipfile.ZipFile(wheel).extractall(KEPT)
        for program in (CMAKE, NINJA, CLANG_FORMAT):
            program.chmod(0o755)
        whole.write_text(repr(WHEELS))


def run(words, folder, library):
    """Status and output, CPU time, and peak memory where GNU time is there: that of a child of ours would begin with Python's."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment["PATH"] = f"{NINJA.parent}:{environment['PATH']}"
    preload = [f"LD_PRELOAD={library}"] if library else []
    peak = pathlib.Path(folder).parent / "peak"
    timer = [shutil.which("time"), "-q", "-f", "%M", "-o", str(peak)] if shutil.which("time") else []
    before = os.times()
    done = subprocess.run([*timer, "env", *preload, *map(str, words)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    after = os.times()
    text = re.sub(rb"done \([0-9.]+s\)", b"done", done.stdout)
    memory = f"{int(peak.read_text()) / 1024:.1f} MiB" if timer else "?"
    return ((done.returncode, text), f"{sum(after[2:4]) - sum(before[2:4]):.2f} s, {memory}")


def files_of(folder):
    """The names and bytes of what a step wrote, but for books that hold times."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in (".ninja_log", ".ninja_deps", "CMakeConfigureLog.yaml")
            and not path.is_relative_to(folder / "b/CMakeFiles" / "3.27.9")}


def main():
    library = os.environ["HAKMEM_LIB"]
    if platform.machine() != "x86_64" or not pathlib.Path("/lib/ld-musl-x86_64.so.1").exists():
        skip("musl's loader for x86-64 is not there (package musl)")
    if not shutil.which("cc"):
        skip("cc is not there")
    bring()
    sources = sorted((SOURCE / "src").glob("*/*.[ch]"))
    steps = [("cmake, configure", [CMAKE, "-G", "Ninja", "-S", ".", "-B", "b", "--log-level=WARNING"]),
             ("ninja", [NINJA, "-C", "b", "--quiet", "-j", "2"]),
             ("ninja, a child", [NINJA, "-C", "b", "--quiet", "print"]),
             ("cmake, a script", [CMAKE, "-P", "script.cmake"]),
             ("cmake, tar", [CMAKE, "-E", "tar", "cJf", "x.tar.xz", "--mtime=2020-01-01", "b/f1.c", "b/f2.c", "CMakeLists.txt"]),
             ("clang-format", [CLANG_FORMAT, "--style=Mozilla", *sources])]
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        seen = []
        for kind, preloaded in (("own", None), ("ours", library)):
            folder = pathlib.Path(scratch) / "work"  # the same name for both: it is in what they write
            folder.mkdir()
            (folder / "CMakeLists.txt").write_text(PROJECT)
            (folder / "script.cmake").write_text(SCRIPT)
            seen.append([(*run(words, folder, preloaded), files_of(folder)) for _, words in steps])
            folder.rename(f"{scratch}/{kind}")
        for (what, _), own, ours in zip(steps, *seen):
            differing = [name for name in own[2].keys() | ours[2].keys() if own[2].get(name) != ours[2].get(name)]
            if own[0] != ours[0] or own[0][0] != 0 or differing:
                failures += 1
                print(f"FAILED {what}: {own[0]} with musl's malloc, {ours[0]} with ours, files that differ: {differing}")
            else:
                print(f"ok     {what}: CPU time and peak memory {own[1]} with musl's malloc, {ours[1]} with ours")
        os.environ["HAKMEM_OPTIONS"] = "report:exit"
        for program in (CMAKE, NINJA, CLANG_FORMAT):
            report = run([program, "--version"], scratch, library)[0][1].decode()
            if "hakmem: the program holds" not in report:
                failures += 1
                print(f"FAILED {program.name} is not on the library: {report}")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
