# SPDX-License-Identifier: MIT
"""`./hakmem symbolize [FILE]`: a report with functions, files and lines behind the addresses of its stacks.

Passes every other line on as it comes. Needs the program's files, but neither the process nor another package.
"""
from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import Iterable, Iterator, Optional

from . import symbols
from .elf import Elf
from .installed import NAME

ADDRESS = re.compile(r"#\d+ (0x[0-9a-f]{1,16}) (/.*)\+(0x[0-9a-f]{1,16})\s*$")  # src/guard/stack_print.c prints it
USAGE = f"""usage: {NAME} symbolize [FILE]

Writes functions, files and lines beside the addresses of a report's stacks: of
FILE, or of standard input, as in
    PROGRAM 2>&1 | {NAME} symbolize"""


@dataclass(frozen=True)
class Place:
    """A mapping of the one byte before a return address."""

    start: int
    end: int
    offset: int
    path: str
    build_id: str = ""


def _offset(file: Elf, address: int) -> Optional[int]:
    """Where in the file lies what is loaded there."""
    return next((address - start + offset for offset, start, length in file.segments if start <= address < start + length),
                None)


def _place(line: str, files: dict[str, Optional[Elf]]) -> Optional[Place]:
    """Reports count from the file's first byte."""
    found = ADDRESS.search(line)
    if found is None:
        return None
    address, path, distance = int(found[1], 16), found[2], int(found[3], 16)
    if path not in files:
        files[path] = Elf.open(path)
    file = files[path]
    offset = _offset(file, file.begin + distance - 1) if file and distance else None
    return None if offset is None else Place(address - 1, address, offset, path)


def _words(frame: symbols.Frame) -> str:
    where = frame.file and (f"{frame.file}:{frame.line}" if frame.line else frame.file)
    return " at ".join(part for part in (frame.function, where) if part)


def _named(lines: list[str]) -> Iterator[str]:
    files: dict[str, Optional[Elf]] = {}
    places = [_place(line, files) for line in lines]
    known = [place for place in places if place]
    names: symbols.Names = {}
    if known:
        names = symbols.names([place.end for place in known], known)
    for line, place in zip(lines, places):
        frames = [frame for frame in names[place.end] if _words(frame)] if place else []
        if not frames:
            yield line
            continue
        indent = line.index("#") + 3
        yield f"{line.rstrip()} {_words(frames[0])}\n"
        for frame in frames[1:]:
            yield f"{line[:line.index('#')]}{' ' * (indent - line.index('#'))}inlined into {_words(frame)}\n"


def named(lines: Iterable[str]) -> Iterator[str]:
    """Stacks are looked up at once, each when it has ended."""
    stack: list[str] = []
    for line in lines:
        if ADDRESS.search(line):
            stack.append(line)
            continue
        yield from _named(stack)
        stack = []
        yield line
    yield from _named(stack)


def run(words: list[str]) -> int:
    if len(words) > 1 or any(word.startswith("-") and word != "-" for word in words):
        is_help = words in (["-h"], ["--help"])
        print(USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    try:
        path = words[0] if words and words[0] != "-" else sys.stdin.fileno()
        with open(path, encoding="utf-8", errors="surrogateescape", buffering=1,
                  closefd=not isinstance(path, int)) as lines:
            sys.stdout.reconfigure(errors="surrogateescape")
            for line in named(lines):
                sys.stdout.write(line)
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more at its end
        return 141
    except OSError as error:
        print(f"hakmem: {words[0] if words else 'standard input'}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
