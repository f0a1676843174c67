#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what CONTRIBUTING.md demands and no compiler sees.

- Each atomic operation that is not relaxed names its pair ("pairs NAME" on its line or the line above). Each pair has
  both sides, and an entry in docs/remote-free.md, which has no other.
- Each invariant that src/ or docs/remote-free.md states is cited by a test, and each one that is cited is stated.
- No variable that is written under a lock is static (HAK_LOCKED_STATE). Three files set errno; others restore it.
- Each fatal kind of misuse (src/base/check.h) has a crime (test/crime) that ends in its text.
- Each .c file of src/ has a unit test of its name, or a row in test/unit/ELSEWHERE that names its tests; no row is
  needless or names a missing file.
- The subjects of the newest commits have at most 72 characters, where git knows them.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ORDERED = re.compile(r"\bhak_(?:\w+_)?(?:load|store|swap|cas|or|and|add|sub|fence)_(acquire|release)\(")
BARE = re.compile(r"\b__(?:atomic|sync)_\w+\s*\(|\batomic_\w+_explicit\s*\(")  # those of base/atomics.h have names that are looked for
PAIR = re.compile(r"\bpairs ([A-Z]+(?:-[A-Z0-9]+)?)")
EXPLAINED = re.compile(r"\*\*([A-Z]+(?:-[A-Z0-9]+)?)\*\*")
STATED = re.compile(r"^(?: \*\s+|- \*\*)([A-Z]+-\d+)\s", re.M)  # in headers; in docs/remote-free.md
CITED = re.compile(r"\b[A-Z]+-\d+\b")
KIND = re.compile(r'X\((\w+),\s*"((?:[^"]|"[\s\\]*")*)"\)')  # of several strings, too
JOINT = re.compile(r'"[\s\\]*"')
LOCKED_STATIC = re.compile(r"^[^/\n]*\bstatic\b[^/\n]*;[^\n]*\[lock [A-Z]|"
                           r"^static\b[^;(]*[^;(\n]\n[^;(]*;[^\n]*\[lock [A-Z]|"  # on several lines, as a struct, too
                           r"^static struct\b[^;({]*\{[^{}]*\[lock [A-Z][^{}]*\}[^;(\n]*;|"
                           r"^[ ]*/?\*[^\n]*\[lock [A-Z][^\n]*\*/\n(?:HAK_\w+(?:\(\d\))?\s)*static\b[^(\n]*[;=]", re.M)
ERRNO = re.compile(r"\berrno\s*=(?!=)[^;]*\bE[A-Z0-9]+\b|__errno_location")
ERRNO_SETTERS = ("src/api/family.c", "src/compat/mallocx.c", "src/front/malloc.c")
NO_MISUSE = ("OPTION_STRICT", "INVARIANT")
SUBJECT, COMMITS = 72, 30
PARTS = ("unity.c", "cold.c")  # they only include other files
SYSTEM = re.compile(r"(?<=.)_(?:linux|glibc)$")
OBSERVER = "observe/collect.c"  # has the other side of pairs of src/
PAIRS = Path("docs/remote-free.md")  # explains pairs of atomics, states what remote frees rely on


def texts(root, pattern):
    return {path.relative_to(root): path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(root.glob(pattern)) if path.is_file()}


def check_pairs(source, pages):
    sides = {}
    for path, text in source.items():
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if path.name == "atomics.h":
                continue
            if BARE.search(line):
                yield f"{path}:{number + 1}: an atomic operation that base/atomics.h does not name"
            for operation in ORDERED.finditer(line):
                pair = PAIR.search(line) or PAIR.search(lines[number - 1] if number else "")
                if pair is None:
                    yield f"{path}:{number + 1}: names no pair"
                else:
                    sides.setdefault(pair[1], set()).add(operation[1])
    for pair, found in sorted(sides.items()):
        if len(found) != 2:
            yield f"pair {pair}: only the {' '.join(found)} side is there"
        if f"**{pair}**" not in pages:
            yield f"pair {pair}: docs/remote-free.md does not explain it"
    for pair in sorted(set(EXPLAINED.findall(pages)) - sides.keys()):
        yield f"pair {pair}: docs/remote-free.md explains it, but no operation names it"


def check_invariants(source, tests, pages):
    stated = {name: path for path, text in {**source, PAIRS: pages}.items() for name in STATED.findall(text)}
    pairs = {pair for text in source.values() for pair in PAIR.findall(text)}
    cited = {name for text in tests.values() for name in CITED.findall(text)}
    for name, path in sorted(stated.items()):
        if name not in cited:
            yield f"{path}: no test cites {name}"
    for path, text in source.items():
        for name in sorted(set(CITED.findall(text)) - set(stated) - pairs):
            yield f"{path}: {name} is stated nowhere"


def check_state(source):
    for path, text in source.items():
        for found in LOCKED_STATIC.finditer(text):
            line = text.count("\n", 0, found.end()) + 1
            yield f"{path}:{line}: written under a lock, so not static but HAK_LOCKED_STATE"
        if str(path) not in ERRNO_SETTERS and ERRNO.search(text):
            yield f"{path}: sets errno"


def check_kinds(header, crimes):
    for name, text in ((name, JOINT.sub("", text)) for name, text in KIND.findall(header)):
        if name not in NO_MISUSE and not any(text in crime for crime in crimes.values()):
            yield f"no crime ends in {name}: {text}"


def unit_test_of(file):
    """The unit test that mirrors a file of src/."""
    stem = SYSTEM.sub("", file.stem) if file.parent.name == "os" else file.stem
    return f"test/unit/{file.parent.name}_{stem}_test.c"


def check_mirror(root):
    table, rows = root / "test/unit/ELSEWHERE", {}
    for line in table.read_text(encoding="utf-8").splitlines() if table.is_file() else ():
        file, *tests = line.partition("#")[0].split() or [None]
        if file is None:
            continue
        if file in rows:
            yield f"test/unit/ELSEWHERE: {file} has two rows"
        rows[file] = tests
        if not tests:
            yield f"test/unit/ELSEWHERE: {file} names no test"
        for name in (f"src/{file}", *(f"test/{test}" for test in tests)):
            if not (root / name).is_file():
                yield f"test/unit/ELSEWHERE: {name} does not exist"
    for path in sorted(root.glob("src/**/*.c")):
        file, mirror = path.relative_to(root / "src"), unit_test_of(path)
        if path.name in PARTS:
            continue
        is_mirrored = (root / mirror).is_file()
        if is_mirrored and str(file) in rows:
            yield f"test/unit/ELSEWHERE: {file} needs no row, {mirror} exists"
        elif not is_mirrored and str(file) not in rows:
            yield f"src/{file}: neither {mirror} nor a row in test/unit/ELSEWHERE"


def check_subjects(root):
    try:
        found = subprocess.run(["git", "-C", root, "log", f"-{COMMITS}", "--first-parent",
                                "--format=%h %s"], capture_output=True,
                               text=True, check=False).stdout
    except OSError:
        return
    for line in found.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT:
            yield f"{commit}: its subject has {len(subject)} characters"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    source = texts(root, "src/**/*.[ch]")
    pages = (root / PAIRS).read_text(encoding="utf-8")
    errors = [*check_pairs({**source, **texts(root, OBSERVER)}, pages),
              *check_invariants(source, {**texts(root, "test/**/*.[ch]"), **texts(root, "test/**/*.py")}, pages),
              *check_state(source),
              *check_kinds((root / "src/base/check.h").read_text(encoding="utf-8"), texts(root, "test/crime/*.tsv")),
              *check_mirror(root),
              *check_subjects(root)]
    if errors:
        sys.exit("\n".join("check_rules: " + error for error in errors))
    print("pairs, invariants, crimes, unit tests and subjects are as CONTRIBUTING.md demands")


if __name__ == "__main__":
    main()
