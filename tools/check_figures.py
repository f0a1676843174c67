#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that figures in the documents are those of the code, and that each bound has a test.

    check_figures.py PROGRAM LIBRARY [--root DIR]     PROGRAM: test/check/figures.c; LIBRARY: libhakmem.so

docs/evidence.tsv says where the numbers are from. A row: page, heading of the section, what the text says there, and
figures, which must have that value as it is rounded there; tests, which must exist; or a reason in quotes.
In pages of WHOLE each number must be in one of these texts, in words, too, from two on.
"""
import argparse
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

PAGES = ("README.md", "docs/*.md")
TABLE = "docs/evidence.tsv"
WHOLE = ("docs/worst-cases.md",)
PT_LOAD, PT_TLS, PF_W = 1, 7, 2
HEADING = re.compile(r"^#+ (.*)$", re.M)
HIDDEN = re.compile(r"<!--.*?-->|`[^`\n]*`|\]\([^)\n]*\)", re.S)
WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twice": 2,
         "half": 1 / 2, "quarter": 1 / 4, "quarters": 1 / 4, "fifth": 1 / 5, "tenth": 1 / 10, "doubles": 2}
NUMBER = re.compile(rf"(?<![\w.,/-])(?:1/(?P<part>\d+)|(?P<digits>\d{{1,3}}(?:[ ,]\d{{3}})+(?!\d)|\d+)(?P<rest>\.\d+)?"
                    rf"|(?P<word>{'|'.join(WORDS)})\b)(?:\s*(?:a )?(?P<unit>KiB|MiB|GiB|bytes|B|seconds?|ms|s|%)(?!\w))?")
UNITS = {"bytes": {"B": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
         "ns": {"s": 10**9, "second": 10**9, "seconds": 10**9, "ms": 10**6}, "percent": {"%": 1}}


def printed(program):
    """{name: value} of the program."""
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


def measured(library, root):
    """{name: value} of the library's ELF header and of the counted hit paths."""
    found, elf = {}, Path(library).read_bytes()
    at, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
    for i in range(count):
        kind, flags, _, _, _, file_bytes, memory_bytes, _ = struct.unpack_from("<IIQQQQQQ", elf, at + i * size)
        if kind == PT_TLS:
            found["tls_bytes"] = memory_bytes
        elif kind == PT_LOAD and flags & PF_W:
            found["library_zero_bytes"] = memory_bytes - file_bytes
    counts = json.loads((root / "test/golden/fastpath.x86-64.json").read_text(encoding="utf-8"))
    for name in ("malloc", "free"):
        found[f"{name}_instructions"] = counts[name]["instructions"]
    return found


def tests(root):
    """Names of test functions, and of entries of the CMake files."""
    names = set()
    for path in (root / "test").rglob("*"):
        if path.suffix in (".c", ".cpp", ".py"):
            names.update(re.findall(r"^(?:static void |def |[A-Z_]+\()(\w+)\b", path.read_text(encoding="utf-8"), re.M))
        elif path.name == "CMakeLists.txt":
            names.update(re.findall(r"hak_(?:script_)?test\((\w+)", path.read_text(encoding="utf-8")))
    return names


def is_value(match, name, value):
    """Whether the number in the text is the figure, as far as it is written out."""
    if match["part"] or name.endswith("_part"):
        said = float(match["part"] or 0) or 1 / WORDS.get(match["word"], 0.1)
        return name.endswith("_part") and said == value
    unit = UNITS.get(name.rsplit("_", 1)[-1], {None: 1}).get(match["unit"])
    if unit is None:
        return False
    digits = len(match["rest"] or ".") - 1
    is_rounded = digits > 0 or value >= 10 * unit or match["unit"] == "%"
    return abs(said_number(match) - value / unit) <= 0.5 * 10**-digits * is_rounded


def said_number(match):
    if match["word"]:
        return WORDS[match["word"]]
    return float(re.sub(r"[ ,]", "", match["digits"]) + (match["rest"] or ""))


class Checker:
    def __init__(self, root, known, names):
        self.root, self.known, self.names, self.errors, self.used = root, known, names, [], set()

    def entry(self, where, text, said, sources):
        """Where in the text it says so: spans."""
        spans = [match.span() for match in re.finditer(rf"(?<![\w.,/]){re.escape(said)}(?![\w]|[.,]\d)", text)]
        if not spans:
            self.errors.append(f"{where}: the text does not say '{said}'")
        for source in sources:
            if source in self.known:
                self.used.add(source)
                numbers = list(NUMBER.finditer(said))
                if len(numbers) != 1 or not is_value(numbers[0], source, self.known[source]):
                    self.errors.append(f"{where}: '{said}', but {source} is {self.known[source]:g}")
            elif not re.fullmatch(r'".+"', source) and source not in self.names:
                self.errors.append(f"{where}: {source} is neither a figure nor a test")
        return spans

    def section(self, where, text, rows, is_whole):
        text = re.sub(r"\s+", " ", HIDDEN.sub(" ", text))
        spans = []
        for said, sources in rows:
            spans += self.entry(where, text, said, re.findall(r'"[^"]*"|\w+', sources))
        for match in NUMBER.finditer(text) if is_whole else ():
            if not any(start <= match.start() and match.end() <= end for start, end in spans):
                near = text[max(match.start() - 30, 0):match.end() + 30]
                self.errors.append(f"{where}: no evidence for '{match[0].strip()}' in '...{near}...'")

    def page(self, path, table):
        """Takes its rows out of the table."""
        text, name = path.read_text(encoding="utf-8"), path.relative_to(self.root).as_posix()
        heads = list(HEADING.finditer(text))
        starts = [("", 0), *((head[1], head.end()) for head in heads)]
        for (head, start), end in zip(starts, [head.start() for head in heads] + [len(text)]):
            where = f"{name}:{text.count(chr(10), 0, start) + 1}"
            self.section(where, text[start:end], table.pop((name, head), ()), name in WHOLE)


def evidence(root):
    """{(page, heading): [(text, evidence)]}"""
    found = {}
    for line in (root / TABLE).read_text(encoding="utf-8").splitlines()[1:]:
        page, head, said, sources = line.split("\t")
        found.setdefault((page, head), []).append((said, sources))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    figures = printed(options.program)
    checker = Checker(options.root, {**figures, **measured(options.library, options.root)}, tests(options.root))
    table = evidence(options.root)
    for pattern in PAGES:
        for path in sorted(options.root.glob(pattern)):
            checker.page(path, table)
    checker.errors += [f"{TABLE}: {page} has no section '{head}'" for page, head in table]
    checker.errors += [f"no page says {name} any more" for name in sorted(set(figures) - checker.used)]
    if checker.errors:
        sys.exit("\n".join("check_figures: " + error for error in checker.errors))
    print(f"{len(figures)} figures are those of the code")


if __name__ == "__main__":
    main()
