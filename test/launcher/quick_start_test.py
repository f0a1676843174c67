#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/quick-start.md shows of its perl program, and of the options in force, is what is printed, but for the numbers."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE, LIBRARY = Path(os.environ["HAKMEM_SOURCE"]), os.environ["HAKMEM_LIB"]
PAGE = (SOURCE / "docs/quick-start.md").read_text(encoding="utf-8")
PAIR = re.compile(r"^```sh\n((?:(?!```).*\n)+)```\n\n```\n((?:(?!```).*\n)+)```$", re.M)  # commands, and what they print
OURS = re.compile(r"perl words\.pl|HAKMEM_OPTIONS=show")
NUMBER = re.compile(r"\d[\d.]*\d|\d")
UNIT = re.compile(r"# (?:B|KiB|MiB|%)(?= |,|\.|:|;|\)|$)")


def plain(text: str) -> str:
    """Without numbers, units of sizes, and the ends of lines."""
    return UNIT.sub("#", NUMBER.sub("#", " ".join(text.split())))


def printed(command: str, folder: str) -> str:
    here = command.replace("./hakmem run", f"{SOURCE}/hakmem run --lib {LIBRARY}").replace("/usr/local/lib/libhakmem.so", LIBRARY)
    done = subprocess.run(here, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return done.stdout


def main() -> None:
    if shutil.which("perl") is None:
        print("skipped: perl is not installed")
        sys.exit(77)
    program = re.search(r"^```perl\n((?:(?!```).*\n)+)```$", PAGE, re.M)[1]
    pairs = [(commands.splitlines()[-1], shown) for commands, shown in PAIR.findall(PAGE)
             if OURS.search(commands) and not re.search(r"lab run|hakmem fit", commands)]
    assert len(pairs) == 4, [command for command, _ in pairs]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "words.pl").write_text(program, encoding="utf-8")
        for command, shown in pairs:
            said = plain(printed(command, folder))
            lines = [line for line in shown.splitlines() if not re.match(r"hakmem: (?:building|the first build)", line)]
            wanted = plain("\n".join(lines)).removesuffix("...").rstrip()
            assert said.startswith(wanted), f"{command}\nprints\n  {said[:len(wanted) + 80]}\nand the page shows\n  {wanted}"
            print(f"{command}: as on the page")


if __name__ == "__main__":
    main()
