# SPDX-License-Identifier: MIT
"""Interpreters, each with a script that allocates a lot and prints checksums."""

from rig.registry import program


def script(name, file, amount="", loads=1, **plain):
    """An interpreter with its script; `plain`: a variable that makes it call malloc itself."""

    def steps(run):
        for env in ({}, plain) if plain else ({},):
            env = {**env, "PYTHONHASHSEED": "0"}
            run.cmd(f"{name} {run.guest(file)} {amount}", env=env, loads=loads)

    program(name, name=name.removesuffix("3"))(steps)


script("bash", "work.bash", loads=20)
script("perl", "work.pl")
script("ruby", "work.rb")
script("php", "work.php", USE_ZEND_ALLOC="0")
script("lua", "lua.lua", "200", LUA_INIT="collectgarbage('generational')")
script("node", "work.js", loads=2)
script("python3", "python_objects.py", "60", PYTHONMALLOC="malloc")


@program("java javac", long=True)
def java(run):
    run.cmd(f"javac -d out {run.guest('Work.java')}")
    for name in sorted(path.name for path in (run.place / "out").iterdir()):
        run.file(f"out/{name}")
    run.cmd("java -Xmx256m -cp out Work")
    run.cmd("java -Xmx256m -XX:+UseSerialGC -Xint -cp out Work short")


@program("python3")
def binding(run):
    """Every name of the family resolves to the preloaded library, not to libc."""
    run.cmd("python3", run.guest("binding.py"), str(run.lib or "libc"), label="binding.py")
