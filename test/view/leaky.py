# SPDX-License-Identifier: MIT
"""The C program of programs/ with known lines, and a profile whose stacks lie in it."""
from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
import synthetic
from synthetic import Load, Truth

from hakmem_view.elf import Elf

PROGRAMS = Path(__file__).resolve().parent / "programs"
COMPILER = pytest.mark.skipif(not (shutil.which("cc") and shutil.which("objdump")), reason="no cc and objdump")
FLAGS = ("-g", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id")


def compiled(folder: Path, *flags: str) -> Path:
    made = folder / "leaky"
    subprocess.run(["cc", *(flags or FLAGS), "-o", made, PROGRAMS / "leaky.c"], check=True)
    return made


def line_of(words: str, name: str = "leaky.c") -> int:
    """The line that has a comment."""
    lines = (PROGRAMS / name).read_text(encoding="utf-8").splitlines()
    return next(at for at, line in enumerate(lines, 1) if words in line)


@lru_cache(maxsize=8)
def calls(program: Path) -> dict[tuple[str, str], int]:
    """(caller, called) → the place in the file where the call returns to."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    elf, found, inside, wanted = Elf.open(str(program)), {}, "", None
    for line in text.splitlines():
        head = re.match(r"[0-9a-f]+ <([^>]+)>:", line)
        at = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
        if head:
            inside, wanted = head[1], None
        elif at:
            if wanted:
                found.setdefault(wanted, int(at[1], 16))
            called = re.search(r"^(?:call|bl)\S*\s.*<([^>@+]+)(?:@plt)?>", at[2])
            wanted = (inside, called[1]) if called else None
    # Addresses become places in the file.
    return {key: next(value - address + offset for offset, address, size in elf.segments if address <= value < address + size)
            for key, value in found.items()}


def load(program: Path) -> Load:
    """16 MiB leaked in leak_record, 4 MiB of pinned blocks, work() that frees."""
    at = calls(program)
    main = [at["main", "leak_record"]]
    return Load([Truth([at["leak_record", "malloc"], *main], 1008, 16_000, requested=1000),
                 Truth([at["pin_slab", "calloc"], at["main", "pin_slab"]], 512, 8000, pinned=31 << 20),
                 Truth([at["work", "malloc"], at["main", "work"]], 320, 0, freed=900_000)],
                path=str(program), build_id=Elf.open(str(program)).build_id)


def document(program: Path, seed: int = 1) -> dict:
    return synthetic.document(load(program), seed)
