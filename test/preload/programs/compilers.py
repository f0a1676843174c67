# SPDX-License-Identifier: MIT
"""Compilers and linkers: object files and executables are the same byte for byte."""

from rig import inputs
from rig.registry import program


def compile_and_run(run, compiler, source, flags, loads=3):
    """Object file, assembly output and a linked program."""
    run.cmd(f"{compiler} {flags} -c {source} -o unit.o", loads=loads)
    run.file("unit.o")
    run.cmd(f"{compiler} unit.o -o program -pthread", loads=2)
    run.file("program")
    run.cmd("./program")


@program("gcc", long=True)
def gcc(run):
    run.write("many.c", inputs.c_source(inputs.many(400, 150)))
    compile_and_run(run, "gcc", "many.c", "-O2 -g -Wall")
    run.cmd("gcc -O1 -flto=2 -Wl,-Map=map.txt many.c -o whole", loads=5)
    run.cmd("./whole")


@program("g++", long=True, timeout=600)
def gxx(run):
    """What was built has many threads that pass objects to each other."""
    compile_and_run(run, "g++", run.guest("threads.cpp"), "-O2 -g -std=c++17 -pthread")
    for threads in (1, 4, 16):
        run.cmd(f"./program {threads} 20")


@program("clang", long=True)
def clang(run):
    run.write("many.c", inputs.c_source(inputs.many(400, 150)))
    compile_and_run(run, "clang", "many.c", "-O2 -g", loads=1)
    compile_and_run(run, "clang++", run.guest("threads.cpp"), "-O1 -g -std=c++17", loads=1)


@program("cargo", long=True, timeout=600)
def cargo(run):
    """A crate without dependencies, offline; the compiler may bring an allocator of its own."""
    for name in ("Cargo.toml", "src/main.rs"):
        run.guest(f"crate/{name}")
    how = {"cwd": run.place / "crate", "env": {"CARGO_HOME": str(run.home / "cargo"),
                                               "CARGO_TERM_COLOR": "never"}}
    run.cmd("cargo build --release --offline --quiet", loads=3, **how)
    run.file("crate/target/release/work")
    run.cmd("./target/release/work", **how)
    run.cmd("cargo test --offline --quiet", loads=3, clean=without_times, **how)


def without_times(text):
    return b"\n".join(line.partition(b"; finished in")[0] for line in text.split(b"\n"))
