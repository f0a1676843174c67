# SPDX-License-Identifier: MIT
"""Python, with every object from malloc: JSON, dictionaries, source code and text."""
from pathlib import Path

from hakmem_lab.apps import App, BadOutput, Stage, digest

SCRIPT = Path(__file__).parent / "source" / "python_objects.py"


class Python(App):
    name = "python"
    title = "Python, objects from malloc"
    text = ("Reads and writes JSON, groups and sorts dictionaries, parses and compiles source code, edits text. "
            "PYTHONMALLOC=malloc: Python's own allocator is off.")
    programs = ("python3",)
    packages = ("python3",)
    metric = "cpu"

    def run(self, stage: Stage) -> str:
        done = stage.run(["python3", "-S", SCRIPT, self.count(180, stage.scale)],
                         env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"})
        if not done.stdout.startswith(b"json "):
            raise BadOutput()
        return digest(done.stdout)
