# SPDX-License-Identifier: MIT
"""`python -m hakmem` and `hakmem`: the command of the tree in this package, by this Python. `run prog.py`, `run -m module` and
`run -c text` run Python programs by this Python, too, and so do `profile -- prog.py` and `map -- prog.py`."""
import os
import runpy
import sys
from typing import List

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_tree")
DATA = os.path.join(TREE, "share", "hakmem")
VIEWS = ("ps", "stats", "explain", "top", "map", "profile", "symbolize")
COMMANDS = ("options", "check", "enable", "disable", "translate", "fit")
VALUED = ("--profile", "--lib", "--options")


def program_at(words: List[str]) -> int:
    """Where the program begins in the words behind `run`."""
    at = 0
    while at < len(words) and words[at].startswith("--") and words[at] != "--":
        if words[at] in VALUED:
            at += 1
        elif words[at] == "--report":
            at += 1
            if at + 2 < len(words) and not words[at + 1].startswith("-") and words[at + 2].startswith("--"):
                at += 1
        at += 1
    return at + (words[at:at + 1] == ["--"])


def with_python(words: List[str], at: int) -> List[str]:
    """Words whose program begins at `at`, which this Python runs if it is a Python program."""
    first = words[at] if at < len(words) else ""
    if first in ("-m", "-c") or (first.endswith(".py") and os.path.isfile(first)):
        head = words[:at]
        return [*(head if head[-1:] == ["--"] else [*head, "--"]), sys.executable, *words[at:]]
    return words


def main() -> None:
    words = sys.argv[1:]
    command = words[0] if words else "help"
    if command in ("profile", "map") and "--" in words:
        words = with_python(words, words.index("--") + 1)
    if command in VIEWS + COMMANDS + ("exporter",):
        script = os.path.join(DATA, "view.py" if command in VIEWS else "command.py" if command in COMMANDS else "exporter.py")
        sys.dont_write_bytecode = True
        sys.path.insert(0, DATA)
        sys.argv = [script, *words]
        runpy.run_path(script, run_name="__main__")
        return
    if command == "run":
        words = ["run", *with_python(words[1:], program_at(words[1:]))]
    os.execv("/bin/sh", ["sh", os.path.join(TREE, "bin", "hakmem"), *words])


if __name__ == "__main__":
    main()
