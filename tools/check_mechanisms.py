#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks docs/mechanisms.tsv, the price tag of the core: what each mechanism brings, and the files that it costs.

Each file of src/ is in exactly one row; each row says what the mechanism brings, and names pages of the ledger (by
number) or tests that show it, all of which exist. FILE:FUNCTION,FUNCTION are functions of another row's file.
--show prints the table with its lines of code, the largest first.
"""
import argparse
import sys
from pathlib import Path

from check_limits import blank
from proportion import functions

TABLE = "docs/mechanisms.tsv"
COLUMNS = 4  # name, files, what it brings, what shows it


def rows(root):
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield [*line.split("\t"), "", "", ""][:COLUMNS]


def files(root, globs):
    """The files of a row, each once; "" for a pattern without any."""
    for pattern in globs.split():
        if ":" in pattern:
            continue
        found = [path for path in sorted((root / "src").glob(pattern)) if path.is_file()]
        yield from found or [""]


def parts(globs):
    """(file, function) of a row."""
    for pattern in globs.split():
        file, _, names = pattern.partition(":")
        yield from ((f"src/{file}", name) for name in names.split(",") if name)


def exists(root, evidence):
    pattern = f"docs/experiments/{evidence}-*.md" if evidence.isdigit() else evidence
    return any(root.glob(pattern))


def check(root):
    owner, known = {}, functions(root)
    for name, globs, brings, evidence in rows(root):
        if not brings or not evidence:
            yield f"{name}: nothing says what it brings, or what shows it"
        for word in evidence.split():
            if not exists(root, word):
                yield f"{name}: {word} does not exist"
        for part in parts(globs):
            if part[1] not in known or known[part[1]].file != part[0]:
                yield f"{name}: {part[0]} has no function {part[1]}"
            if part in owner:
                yield f"{part[1]}: in two rows, {owner[part]} and {name}"
            owner[part] = name
        for path in files(root, globs):
            if path == "":
                yield f"{name}: a pattern of {globs} has no file"
            elif path in owner:
                yield f"{path.relative_to(root)}: in two rows, {owner[path]} and {name}"
            owner[path] = name
    for path in sorted((root / "src").rglob("*")):
        if path.is_file() and path not in owner:
            yield f"{path.relative_to(root)}: in no row"


def code_lines(path):
    return sum(1 for line in blank(path.read_text(encoding="utf-8")).split("\n") if line.strip())


def is_code(path):
    return path != "" and path.suffix in (".c", ".h", ".cpp", ".def")


def show(root):
    known, apart = functions(root), {part for row in rows(root) for part in parts(row[1])}

    def lines(globs):
        own = {path for path in files(root, globs) if is_code(path)}
        lent = sum(known[name].lines for file, name in apart if root / file in own)
        return sum(map(code_lines, own)) - lent + sum(known[name].lines for _, name in parts(globs))

    table = [(lines(globs), name, brings, evidence) for name, globs, brings, evidence in rows(root)]
    for lines, name, brings, evidence in sorted(table, reverse=True):
        print(f"{lines:6} {name:34} {brings} ({evidence})")
    print(f"{sum(row[0] for row in table):6} lines of code, {len(table)} mechanisms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--show", action="store_true", help="print the table with lines of code")
    args = parser.parse_args()
    errors = [*check(args.root)]
    if errors:
        sys.exit("\n".join(f"check_mechanisms: {TABLE}: {error}" for error in errors))
    if args.show:
        show(args.root)
    else:
        print("each file of src/ belongs to one mechanism, and each mechanism says what it brings")


if __name__ == "__main__":
    main()
