#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints how large the core is, and how much of it a malloc and a free go through, beside the goals.

    proportion.py [--root FOLDER] [--library LIBRARY]       the library as it is installed, without symbols

reach      functions, and their files, that malloc and free lead to by name, as tables of function pointers are not followed.
           Starts of process and thread, and fatal reports, end it.
free's way the functions that get the address of the block that is freed, depth first, each once, in the order of the text.
           Each entry into another file is a station, and each file a room.
"""
import argparse
import os
import re
import sys
from pathlib import Path

from check_limits import Checker, blank

ENTRIES, FREE, VALUE = ("hak_malloc", "hak_free"), "hak_free", "block"
ENDS = re.compile(r"hak_(?:fatal|warn|life_process_start|life_thread_start|tag_report|print_line)\w*$")
ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|^[A-Z]\w*\([^(){};]*\)(?=\s+\w)", re.M)
DEFINITION = re.compile(r"^(?![ \t#}])([^;{}=#]*?\b(\w+)\s*\(([^;{}]*)\)\s*)(?:[A-Z]\w*\s*)*\{", re.M)
NAME = re.compile(r"\b[A-Za-z_]\w*\b")
OWN_NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")  # not that of a field
DECLARED = re.compile(r"\b(?!return\b)\w+[\s*]+(\w+)\b(?!\s*\()")  # a variable, or behind `struct`
STATIC = re.compile(r"\b(?:static|HAK_INLINE)\b")
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof"}


class Function:
    def __init__(self, file, head, parameters, body):
        self.file, self.body = file, body
        self.lines = sum(1 for line in f"{head}{{{body}}}".split("\n") if line.strip())
        self.only_in = file if file.endswith(".c") and STATIC.search(head) else None
        self.parameters = [(NAME.findall(one) or [""])[-1] for one in split(parameters)]
        self.names = set(OWN_NAME.findall(body)) - set(DECLARED.findall(body)) - set(self.parameters)


def split(arguments):
    """At the outermost commas."""
    parts, depth = [""], 0
    for c in arguments:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def closing(text, at, opener, closer):
    """Behind the bracket that closes the one before `at`."""
    depth = 1
    while depth and at < len(text):
        depth += (text[at] == opener) - (text[at] == closer)
        at += 1
    return at


def functions(root):
    """By name; the first of several builds' definitions."""
    found = {}
    for path in sorted(Path(root, "src").rglob("*.[ch]")):
        text = ATTRIBUTE.sub("", blank(path.read_text(encoding="utf-8")))
        for match in DEFINITION.finditer(text):
            body = text[match.end():closing(text, match.end(), "{", "}") - 1]
            if match.group(2) not in KEYWORDS:
                found.setdefault(match.group(2), Function(str(path.relative_to(root)), *match.group(1, 3), body))
    return found


def leads(all_functions, name, file):
    """Whether a name in a file is that of a function, which a static one is in its own file alone."""
    function = all_functions.get(name)
    return function is not None and function.only_in in (None, file) and not ENDS.match(name)


def reach(all_functions, entries):
    """Names of what the entries lead to."""
    seen, left = set(), [(name, None) for name in entries]
    while left:
        name, file = left.pop()
        if name not in seen and leads(all_functions, name, file):
            seen.add(name)
            left += [(one, all_functions[name].file) for one in all_functions[name].names]
    return seen


def way(all_functions, entry, value):
    """The files of the functions that get the value, as the walk enters them, and comes back."""
    files, seen = [], set()

    def enter(file):
        if not files or files[-1] != file:
            files.append(file)

    def visit(name, values):
        function = all_functions[name]
        seen.add(name)
        enter(function.file)
        for match in re.finditer(rf"({OWN_NAME.pattern})\s*\(", function.body):
            callee = all_functions.get(match.group(1))
            if match.group(1) in seen or not leads(all_functions, match.group(1), function.file):
                continue
            arguments = split(function.body[match.end():closing(function.body, match.end(), "(", ")") - 1])
            passed = {parameter for parameter, argument in zip(callee.parameters, arguments)
                      if values & set(OWN_NAME.findall(argument))}
            if passed:
                visit(match.group(1), passed)
                enter(function.file)

    sys.setrecursionlimit(10000)
    visit(entry, {value})
    return files


def count(pattern, *paths):
    return sum(len(re.findall(pattern, path.read_text(encoding="utf-8"), re.M)) for path in paths)


def tables(root):
    """Sealed or registered structures of function pointers: how many, and how many pointers."""
    sizes = []
    for path in sorted(Path(root, "src").rglob("*.h")):
        text = blank(path.read_text(encoding="utf-8"))
        for match in re.finditer(r"\bstruct(?:\s+\w+)*\s*\{(.*?)^\}[^;]*;", text, re.M | re.S):
            pointers = len(re.findall(r"\(\s*\*\s*(?:const\s+)?\w+\s*(?:\[[^]]*\])?\s*\)\s*\(", match.group(1)))
            sizes += [pointers] if pointers > 1 else []
    return len(sizes), sum(sizes)


def rows(root, library):
    """(what, present, goal) of each figure."""
    source = Path(root, "src")
    all_functions = functions(root)
    reached = reach(all_functions, ENTRIES)
    stations = way(all_functions, FREE, VALUE)
    table_count, pointers = tables(root)
    code = Checker(str(root)).check_core()[1]
    layers = (source / "LAYERS").read_text(encoding="utf-8")
    several = sum(len(line.split("#")[0].split()) - 1 for line in layers.splitlines() if line.startswith("several "))
    yield "lines of code of src/", code, 13500
    yield "reach of malloc and free, functions", len(reached), 400
    yield "reach of malloc and free, files", len({all_functions[name].file for name in reached}), 45
    yield "free's way, stations", len(stations), 100
    yield "free's way, rooms", len(set(stations)), 25
    yield "tables of function pointers", table_count, 2
    yield "function pointers in them", pointers, 12
    yield "headers of several files (LAYERS)", several, 8
    yield "options", count(r"^HAK_OPTION\w*\(", source / "base/options.def"), 22
    yield "figures, counters included", count(r"^    X\(", source / "base/counters.h", source / "stat/stat.h"), 60
    yield "files of src/ with JSON", sum('"{\\"' in path.read_text(encoding="utf-8") for path in source.rglob("*.[ch]")), 0
    if library is not None:
        yield "library without symbols, KiB", (os.path.getsize(library) + 1023) // 1024, 200


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--library", type=Path)
    args = parser.parse_args()
    print(f"{'':<36} {'now':>7} {'goal':>7}")
    for what, present, goal in rows(args.root, args.library):
        print(f"{what:<36} {present:>7} {goal:>7}{'' if present <= goal else '  above'}")


if __name__ == "__main__":
    main()
