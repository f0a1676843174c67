# SPDX-License-Identifier: MIT
"""Build tools that start many processes."""

from rig import inputs
from rig.registry import program

UNITS = 24


def write_project(run):
    """A program of many small files; every object is named in the sum that it prints."""
    names = [f"unit_{index}" for index in range(UNITS)]
    for index, name in enumerate(names):
        body = (
            inputs.c_source(3, seed=index).decode().replace("int main(void)", f"int {name}(void)")
        )
        run.write(
            f"src/{name}.c",
            body.replace('printf("%u\\n", x);\n    return 0;', "return (int)(x % 1000);"),
        )
    calls = " + ".join(f"{name}()" for name in names)
    head = "".join(f"int {name}(void);\n" for name in names)
    run.write(
        "src/main.c",
        f'#include <stdio.h>\n{head}int main(void) {{ printf("%d\\n", {calls}); return 0; }}\n',
    )


@program("make gcc")
def make(run):
    write_project(run)
    run.guest("Makefile")
    run.cmd("make", "-j4", "--no-print-directory", loads=3 * UNITS, clean=sorted_lines)
    run.file("program")
    run.cmd("./program")
    run.cmd("make", "-q", "program")
    run.cmd("make", "clean", "list", "CFLAGS=-Os", loads=2)


@program("cmake make gcc")
def cmake(run):
    write_project(run)
    run.guest("CMakeLists.txt")
    run.cmd("cmake", "-S", ".", "-B", "out", "-G", "Unix Makefiles", loads=10, clean=without_times)
    run.cmd("cmake", "--build", "out", "--parallel", "2", loads=3 * UNITS, clean=sorted_lines)
    run.file("out/program")
    run.cmd("./out/program")
    run.cmd("cmake", "--install", "out", "--prefix", "installed", loads=1)


def sorted_lines(text):
    """Jobs that run at once finish in any order; progress figures go with it."""
    lines = (line.partition(b"] ")[2] or line for line in text.split(b"\n"))
    return b"\n".join(sorted(lines))


def without_times(text):
    return b"\n".join(line.partition(b" (")[0] for line in text.split(b"\n"))
