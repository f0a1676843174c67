# SPDX-License-Identifier: MIT
"""Compilers and linkers: object files and executables are the same byte for byte."""

import json

from rig import inputs
from rig.registry import program
from rig.waiting import accepts


def built(run, compiler, source, flags, loads=3):
    """Object file, assembly output and a linked program."""
    run.cmd(f"{compiler} {flags} -c {source} -o unit.o", loads=loads)
    run.file("unit.o")
    run.cmd(f"{compiler} unit.o -o program -pthread", loads=2)
    run.file("program")


@program("gcc", long=True)
def gcc(run):
    run.write("many.c", inputs.c_source(inputs.many(400, 150)))
    built(run, "gcc", "many.c", "-O2 -g -Wall")
    run.cmd("./program")
    run.cmd("gcc -O1 -flto=2 -Wl,-Map=map.txt many.c -o whole", loads=5)
    run.cmd("./whole")


@program("g++ curl", long=True, timeout=600)
def gxx(run):
    """What was built is a server, in which one thread allocates what others free."""
    built(run, "g++", run.guest("json_server.cpp"), "-O2 -g -std=c++17 -pthread")
    port = run.port()
    lines = [{"item": word, "count": len(word), "price": 2.5, "note": "a note of some words"}
             for word in inputs.words(300)]
    orders = [{"id": n, "customer": f"name {n % 40}", "lines": lines[n:n + 20]} for n in range(280)]
    run.write("orders", json.dumps({"orders": orders}))
    post = f"--fail --data-binary @orders http://127.0.0.1:{port}/report"
    with run.server(f"./program {port}", ready=lambda: accepts(port)):
        run.cmd(f"curl -sS {post}")
        many = " --next ".join(f"-sS -o reply-{n} {post}" for n in range(30))
        run.cmd(f"curl -Z --parallel-max 8 {many}", clean=lambda text: b"")
    for n in range(30):
        run.file(f"reply-{n}")


@program("clang", long=True)
def clang(run):
    run.write("many.c", inputs.c_source(inputs.many(400, 150)))
    built(run, "clang", "many.c", "-O2 -g", loads=1)
    run.cmd("./program")
    built(run, "clang++", run.guest("json_server.cpp"), "-O1 -g -std=c++17", loads=1)


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
