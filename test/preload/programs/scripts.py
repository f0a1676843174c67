# SPDX-License-Identifier: MIT
"""Interpreters, each with a script from guest/ that allocates a lot and prints checksums."""

from rig.registry import program


@program("bash")
def bash(run):
    run.cmd("bash", run.guest("work.bash"), loads=20)


@program("perl")
def perl(run):
    run.cmd("perl", run.guest("work.pl"))


@program("ruby")
def ruby(run):
    run.cmd("ruby", run.guest("work.rb"))


@program("php")
def php(run):
    run.cmd("php", run.guest("work.php"))
    run.cmd("php", "work.php", env={"USE_ZEND_ALLOC": "0"}, label="php on malloc itself")


@program("lua")
def lua(run):
    run.cmd("lua", run.guest("work.lua"))


@program("node")
def node(run):
    run.cmd("node", run.guest("work.js"), loads=2)


@program("java javac", long=True)
def java(run):
    run.cmd("javac", "-d", "out", run.guest("Work.java"))
    for name in sorted(path.name for path in (run.place / "out").iterdir()):
        run.file(f"out/{name}")
    run.cmd("java", "-Xmx256m", "-cp", "out", "Work")
    run.cmd("java", "-Xmx256m", "-XX:+UseSerialGC", "-Xint", "-cp", "out", "Work", "short")


@program("python3")
def python(run):
    run.cmd("python3", run.guest("work.py"))
    run.cmd("python3", "work.py", env={"PYTHONMALLOC": "malloc"}, label="python3 on malloc itself")


@program("python3", name="binding")
def binding(run):
    """Every name of the family resolves to the preloaded library, not to libc."""
    run.guest("binding.py")
    expected = run.lib or "libc"
    run.cmd("python3", "binding.py", str(expected), label="binding.py")
