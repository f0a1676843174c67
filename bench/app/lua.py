# SPDX-License-Identifier: MIT
"""Lua: tables, strings and closures under its garbage collector."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Stage, digest

SCRIPT = Path(__file__).parent / "source" / "lua.lua"


class Lua(App):
    name = "lua"
    title = "Lua, tables, strings and closures"
    text = "Builds, sorts and drops trees, strings, queues and closures; the garbage collector frees them."
    programs = ("lua5.4",)
    packages = ("lua5.4",)
    metric = "cpu"
    quick = True

    def run(self, stage: Stage) -> str:
        done = stage.run(["lua5.4", SCRIPT, self.count(350, stage.scale)])
        if not done.stdout.startswith(b"trees "):
            raise BadOutput()
        return digest(done.stdout)
