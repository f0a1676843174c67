#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts the table of observe/causes.def into docs/explain.md; --check compares, and the schema's names, too."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explain.md"
SCHEMA = ROOT / "docs/schema/explain.schema.json"
CAUSE = re.compile(r'^OBS_CAUSE\((\w+), "([^"]*)", "([^"]*)"\)$', re.M)
PLACE = re.compile(r"(?<=<!-- causes: begin -->\n).*(?=<!-- causes: end -->)", re.S)


def main():
    causes = CAUSE.findall((ROOT / "observe/causes.def").read_text())
    table = "".join(f"| `{name}` | {title} | {advice} |\n" for name, title, advice in causes)
    old = PAGE.read_text()
    new = PLACE.sub(lambda _: "| Cause | What it is | What lowers it |\n|---|---|---|\n" + table, old)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new)
    elif new != old:
        sys.exit("docs/explain.md is out of date: run tools/gen_causes.py")
    named = json.loads(SCHEMA.read_text())["$defs"]["cause"]["enum"]
    if named != [name for name, _, _ in causes]:
        sys.exit(f"{SCHEMA.relative_to(ROOT)}: the causes are not those of observe/causes.def, in their order")


if __name__ == "__main__":
    main()
