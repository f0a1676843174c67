# SPDX-License-Identifier: MIT
"""Build tools that start many processes."""

from rig import inputs
from rig.registry import program

UNITS = 24


def write_project(run):
    """A program of many small files; every object is named in the sum that it prints."""
    names = [f"unit_{index}" for index in range(UNITS)]
    for index, name in enumerate(names):
        run.write(f"src/{name}.c", inputs.c_source(3, seed=index, function=name))
    calls = " + ".join(f"{name}() % 1000" for name in names)
    heads = "".join(f"unsigned {name}(void);\n" for name in names)
    main = f'int main(void) {{ printf("%u\\n", {calls}); return 0; }}'
    run.write("src/main.c", f"#include <stdio.h>\n{heads}{main}\n")


@program("make gcc")
def make(run):
    write_project(run)
    run.guest("Makefile")
    run.cmd("make -j4 --no-print-directory", loads=3 * UNITS, clean=sorted_lines)
    run.file("program")
    run.cmd("./program")
    run.cmd("make -q program")
    run.cmd("make clean list CFLAGS=-Os", loads=2)


@program("cmake make gcc")
def cmake(run):
    write_project(run)
    run.guest("CMakeLists.txt")
    run.cmd("cmake -S . -B out -G 'Unix Makefiles'", loads=10, clean=without_times)
    run.cmd("cmake --build out --parallel 2", loads=3 * UNITS, clean=sorted_lines)
    run.file("out/program")
    run.cmd("./out/program")
    run.cmd("cmake --install out --prefix installed")


def sorted_lines(text):
    """Jobs that run at once finish in any order; progress figures go with it."""
    return b"\n".join(sorted(line.partition(b"] ")[2] or line for line in text.split(b"\n")))


def without_times(text):
    return b"\n".join(line.partition(b" (")[0] for line in text.split(b"\n"))
