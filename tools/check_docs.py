#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that every path, link and hak_ or HAK_ symbol named in the documents exists, and every fatal text is explained.

A path counts from the top of the repository, from src/, or from the document's own folder; what ends in / is one. Patterns
(`src/*/x.h`, `src/{slab,large}/`) must match something. `hak_slab_*` must match a symbol. A link's anchor is a heading of
its page, as GitHub names it. The changelog may name symbols that are gone.
Each record of docs/decisions.md is in the table at its head.
Each kind of src/base/check.h is a row of a table of docs/security.md, with its text in the second column.
Each list of test/life/library_calls.h, and no other, is a row of the table of system calls in docs/worst-cases.md.
"""
import argparse
import functools
import glob
import os
import re
import sys

DOCUMENTS = ("*.md", "src/README.md", "docs/*.md", "docs/experiments/*.md", "bench/**/README.md", "packaging/**/README.md",
             "test/**/README.md", "tools/*/README.md")
HISTORY = "CHANGELOG.md"
IDEAS = "docs/experiments/"  # have macros of ideas that were given up
TOP = "src|include|test|tools|bench|docs|cmake|lang"
BUILT = "build/"
LINK = re.compile(r"""\]\(\s*<?([^)#\s>]*)(?:#([^)\s>]*))?>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)""")  # with or without a title
REFERENCE = re.compile(r"""^ {0,3}\[[^\]]+\]: +<?([^#\s>]*)(?:#([^\s>]*))?>?(?: +["'(].*)?$""", re.M)
ATTRIBUTE = re.compile(r"""<(?:a|img)\b[^>]*\b(?:href|src)=["']([^"'#]*)(?:#([^"']*))?["']""")
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)
CODE = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.S)  # also over the end of a line
PATH = re.compile(r"^(?:\./)?[\w.*{},-]+(?:/[\w.*{},-]+)*/?$")
SYMBOL = re.compile(r"\b(?:hak|HAK)_\w+\*?")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?(?:^\1|\Z)", re.M | re.S)
NAMES = re.compile(r"\b(?:hak|HAK)_\w+")
CALLS = re.compile(r"^/\* (.+) \*/\n#define CALLS_\w+ (.+)$", re.M)
CALL = re.compile(r"\bSYS_(\w+)")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
KINDS = re.compile(r"^#define HAK_FATAL_KINDS\(X\)(.*?)\n\n", re.M | re.S)
KIND = re.compile(r'X\((\w+),\s*"((?:[^"]|"[\s\\]*")*)"\)')  # of several strings, too
JOINT = re.compile(r'"[\s\\]*"')


def expand(pattern):
    brace = re.search(r"\{([^{}]*)\}", pattern)
    if not brace:
        return [pattern]
    return [name for part in brace.group(1).split(",")
            for name in expand(pattern[:brace.start()] + part.strip() + pattern[brace.end():])]


def exists(root, here, path):
    return all(any(glob.glob(os.path.join(base, name.rstrip("/")))
                   for base in (root, os.path.join(root, "src"), here))
               for name in expand(path))


def file_names(root):
    """The names of all files and folders of the project, without what was built or fetched."""
    names = set()
    for place, folders, files in os.walk(root):
        folders[:] = [one for one in folders if one[0] != "." and (place, one) != (root, "build")]
        names.update(files, folders)
    return names


def known_symbols(root):
    names = set()
    for folder in ("src", "include", "cmake", "tools", "test", "bench"):
        for place, _, files in os.walk(os.path.join(root, folder)):
            for file in files:
                if file.endswith((".c", ".h", ".cpp", ".hpp", ".def", ".map", ".py", ".cmake", "CMakeLists.txt")):
                    with open(os.path.join(place, file), encoding="utf-8", errors="replace") as text:
                        names.update(NAMES.findall(text.read()))
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as text:
        names.update(NAMES.findall(text.read()))
    return names


def folders_of_src(root):
    src = os.path.join(root, "src")
    return "|".join(n for n in sorted(os.listdir(src)) if os.path.isdir(os.path.join(src, n))) or "-"


def without_fences(path):
    """The text of a page, whose fences have empty lines."""
    with open(path, encoding="utf-8") as file:
        return FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), file.read())


@functools.cache
def anchors(path):
    """Of the headings, in their order."""
    stems = [re.sub(r"[^\w\- ]", "", LINKED.sub(r"\1", heading).lower()).replace(" ", "-")
             for heading in HEADING.findall(without_fences(path))]
    return [f"{stem}-{earlier}" if (earlier := stems[:at].count(stem)) else stem for at, stem in enumerate(stems)]


def check_links(name, path, plain, errors):
    here = os.path.dirname(path)
    for target, anchor in (*LINK.findall(plain), *REFERENCE.findall(plain), *ATTRIBUTE.findall(plain)):
        page = os.path.join(here, target) if target else path
        if re.match(r"\w+:", target):
            continue
        if not os.path.exists(page):
            errors.append(f"{name}: link to {target}, which does not exist")
        elif anchor and page.endswith(".md") and anchor not in anchors(page):
            errors.append(f"{name}: {target or 'the page'} has no heading #{anchor}")


def check(root, path, symbols, files, errors):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    name, here = os.path.relpath(path, root), os.path.dirname(path)
    inside = re.compile(rf"^(?:\./)?(?:{TOP}|{folders_of_src(root)})/")
    starts = re.compile(rf"{inside.pattern}|^[\w-]+\.(?:c|h|hpp|cpp|md|py|sh|def|map|ld|tsv|allow|cmake)$")

    def line(position):
        return f"{name}:{text.count(chr(10), 0, position) + 1}"

    plain = without_fences(path)
    check_links(name, path, plain, errors)
    for match in CODE.finditer(plain):
        words = match.group(2).split()
        if not words or words[0] == "git":  # may name what is gone
            continue
        for word in words if len(words) == 1 else filter(inside.match, words):  # of a command only what lies in a folder
            word = re.sub(r":\d+(?:[-:]\d+)?$|#L\d+$", "", word)
            if PATH.match(word) and (starts.match(word) or word.endswith("/")) and not word.startswith(BUILT):
                if "/" not in word:  # a bare file name: anywhere
                    found = word in files
                else:
                    found = exists(root, here, word)
                if not found:
                    errors.append(f"{line(match.start())}: {word} does not exist")
    for match in SYMBOL.finditer(text if name != HISTORY else ""):
        symbol = match.group()
        if symbol.startswith("HAK_") and name.startswith(IDEAS):
            continue
        if symbol.endswith(("*", "_")):
            stem = symbol.rstrip("*")
            good = any(s.startswith(stem) for s in symbols)
        else:
            good = symbol in symbols
        if not good:
            errors.append(f"{line(match.start())}: {symbol} is not a symbol of the source")


def check_index(root, errors):
    page = os.path.join(root, "docs/decisions.md")
    if os.path.exists(page):
        linked = {anchor for target, anchor in LINK.findall(without_fences(page)) if not target}
        errors += [f"docs/decisions.md: its table lacks #{anchor}" for anchor in anchors(page)[1:] if anchor not in linked]


def check_kinds(root, errors):
    header, page = os.path.join(root, "src/base/check.h"), os.path.join(root, "docs/security.md")
    if not os.path.exists(header):
        return
    with open(header, encoding="utf-8") as file:
        kinds = [(name, JOINT.sub("", text)) for table in KINDS.findall(file.read()) for name, text in KIND.findall(table)]
    with open(page, encoding="utf-8") as file:
        rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in file if line.startswith("|")]
    said = {(name, text) for row in rows if len(row) == 2 for name in row[0].split(", ") for text in row[1].split("; ")}
    if not kinds:
        errors.append("src/base/check.h: no table HAK_FATAL_KINDS")
    errors += [f"docs/security.md: no row of {name} with the text '{text}'" for name, text in kinds
               if (name, text) not in said]


def check_calls(root, errors):
    header, page = os.path.join(root, "test/life/library_calls.h"), os.path.join(root, "docs/worst-cases.md")
    if not os.path.exists(header):
        return
    with open(header, encoding="utf-8") as file:
        lists = {when: set(CALL.findall(calls)) for when, calls in CALLS.findall(file.read())}
    with open(page, encoding="utf-8") as file:
        table = file.read().partition("| When | Calls |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = {}
    for line in table.splitlines():
        when, calls = line.strip("| ").split(" | ")
        rows[LINKED.sub(r"\1", when).replace("`", "")] = {name for _, name in CODE.findall(calls)}
    if not lists:
        errors.append("test/life/library_calls.h: no list of calls")
    errors += [f"docs/worst-cases.md: the calls of '{when}' are {', '.join(sorted(rows.get(when, ()))) or 'missing'}, in "
               f"test/life/library_calls.h {', '.join(sorted(lists.get(when, ()))) or 'missing'}"
               for when in sorted(lists.keys() | rows.keys()) if lists.get(when) != rows.get(when)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    root = os.path.normpath(parser.parse_args().root)
    errors, symbols, files = [], known_symbols(root), file_names(root)
    documents = [p for pattern in DOCUMENTS for p in sorted(glob.glob(os.path.join(root, pattern), recursive=True))]
    for path in documents:
        check(root, path, symbols, files, errors)
    check_index(root, errors)
    check_kinds(root, errors)
    check_calls(root, errors)
    if errors:
        print("\n".join("check_docs: " + e for e in errors), file=sys.stderr)
        sys.exit(1)
    print(f"{len(documents)} documents name only what exists")


if __name__ == "__main__":
    main()
