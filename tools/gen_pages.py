#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the pages that are installed: README.md and those of docs/ that are for users, with the pictures and schemas that
they show. Usage: gen_pages.py FOLDER. A link to what is not installed becomes its text, and `./hakmem` the command's name;
a page with commands that only a clone has says so."""
import pathlib
import posixpath
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OF_THE_SOURCE = ("decisions.md", "life-of-a-block.md", "remote-free.md", "testing.md")  # for its readers
FROM_A_CLONE = ("README.md", "quick-start.md")  # say what is done in one
HEAD = "<!-- Of hakmem {version}; pages without a link, and four digits, which name experiments, are in its source. -->\n"
CLONE = "Commands that begin with `./hakmem` are run in a clone of hakmem's source."
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
INSTALLED = "run|ps|top|stats|explain|map|profile|symbolize|options|check|enable|disable|translate|docs"


def pages():
    """Path from the top of the source, and the name below docs/ where it is installed."""
    found = {"README.md": "README.md"}
    for pattern in ("*.md", "*.svg", "schema/*.json"):
        for path in sorted((ROOT / "docs").glob(pattern)):
            if path.name not in OF_THE_SOURCE:
                found[path.relative_to(ROOT).as_posix()] = path.relative_to(ROOT / "docs").as_posix()
    return found


def converted(text, source, known):
    """The text of a page as it is installed; `known` is what `pages` returned."""
    def link(match):
        mark, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return match.group(0)
        place = known.get(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if place is None:
            return words
        return f"{mark}[{words}]({place}{'#' + anchor if anchor else ''})"
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S)
    text = LINK.sub(link, text)
    if posixpath.basename(source) not in FROM_A_CLONE:
        text = re.sub(rf"\./hakmem (?={INSTALLED}\b)", "hakmem ", text)
        if re.search(r"\./hakmem [a-z]", text):
            text = re.sub(r"\A(# .*\n)", rf"\1\n{CLONE}\n", text)
    return text


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    header = (ROOT / "include/hakmem/hakmem.h").read_text(encoding="utf-8")
    version = ".".join(re.search(rf"HAK_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
    known = pages()
    for source, place in known.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(ROOT / source, path)
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        path.write_text(HEAD.format(version=version) + converted(text, source, known), encoding="utf-8")


if __name__ == "__main__":
    main()
