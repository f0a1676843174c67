# SPDX-License-Identifier: MIT
"""A page of docs/ as `hakmem docs` shows it on a terminal: lines, lists and tables at its width, links that name the command that
shows their page, or the file. By the standard library alone, as the command is installed without any other."""
from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Iterator, Optional

PARTS = re.compile(  # code stays as it is, links become words, comments go
    r"(?P<fence>^```.*?^```)|(?P<comment><!--.*?-->\n?)|(?P<picture>!?)\[(?P<words>(?:`[^`]*`|[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)"
    r"|(?P<code>`[^`\n]+`)", re.M | re.S)
ITEM = re.compile(r"( *)([-*+]|\d+\.) +(.*)")
HEADING = re.compile(r"^(?:.+\n)+(?===+$|--+$)", re.M)
GAP = "  "  # between columns


def _link(words: str, target: str, folder: Path, command: str) -> str:
    """`folder`: of the page."""
    path = target.partition("#")[0]
    if not path:
        return words
    if re.match(r"[a-z]+:", target):
        return words if words == target else f"{words} ({target})"
    place = (folder / path).resolve()
    if place.suffix == ".md" and place.parent == folder.resolve():
        shown = f"`{command} docs {place.stem}`"
        return shown if words.strip("`") == place.name else f"{words} ({shown})"
    root = folder.resolve().parent
    name = place.relative_to(root).as_posix() if root in place.parents else path
    return words if words.strip("`") in (name, place.name) else f"{words} ({name})"


def with_links(text: str, folder: Path, command: str) -> str:
    """Without the forms of Markdown that only a browser follows."""
    def part(found: re.Match) -> str:
        if found["comment"]:
            return ""
        if found["target"] is None:
            return found[0]
        words = " ".join(found["words"].split())
        return _link(f"Picture: {words}" if found["picture"] else words, found["target"], folder, command)
    return PARTS.sub(part, text)


def _plain(text: str) -> str:
    """A line without the marks of emphasis; those of code stay, as nothing else tells it."""
    return re.sub(r"(`[^`]+`)|\*\*(.+?)\*\*|(?<![\w*])\*(\S.*?)\*(?![\w*])", lambda one: one[1] or one[2] or one[3], text).replace("\\|", "|")


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(_plain(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _widths(rows: list[list[str]], width: int) -> Optional[list[int]]:
    """Of columns that fit beside each other without breaking a word: short ones have what they want first, of the rest those more
    that want more. None: they do not fit."""
    wanted = [max(map(len, column)) for column in zip(*rows)]
    found = [max((len(word) for cell in column for word in cell.split()), default=0) for column in zip(*rows)]
    left = width - len(GAP) * (len(wanted) - 1) - sum(found)
    if left < 0:
        return None
    for at in sorted(range(len(wanted)), key=lambda one: wanted[one]):
        lack = sum(wanted) - sum(found)
        more = wanted[at] - found[at] if wanted[at] <= width // 3 else left * (wanted[at] - found[at]) // max(1, lack)
        found[at] += min(left, more, wanted[at] - found[at])
        left = width - len(GAP) * (len(wanted) - 1) - sum(found)
    return found


def _cells(line: str) -> list[str]:
    return [_plain(one.strip()) for one in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _table(lines: list[str], width: int) -> Iterator[str]:
    rows = [_cells(line) for at, line in enumerate(lines) if at != 1]
    rows = [(row + [""] * len(rows[0]))[:len(rows[0])] for row in rows]
    widths = _widths(rows, width)
    if widths is None:  # a line for each cell
        yield from [f"{rows[0][0]}:"] if rows[0][0] else []
        for row in rows[1:]:
            yield from textwrap.wrap(row[0], width)
            for name, cell in zip(rows[0][1:], row[1:]):
                yield from textwrap.wrap(f"{name}: {cell}", width, initial_indent=GAP, subsequent_indent=GAP * 2, break_on_hyphens=False) if cell else ()
        return
    right = [mark.endswith(":") for mark in _cells(lines[1])]
    for at, row in enumerate(rows):
        columns = [textwrap.wrap(cell, wide, break_on_hyphens=False) if cell else [] for cell, wide in zip(row, widths)]
        for line in range(max(1, *map(len, columns))):
            cells = [(column[line] if line < len(column) else "") for column in columns]
            yield GAP.join(cell.rjust(wide) if is_right else cell.ljust(wide) for cell, wide, is_right in zip(cells, widths, right)).rstrip()
        if at == 0:
            yield GAP.join("-" * wide for wide in widths)


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines that belong together: a heading, a table, code with its fences, an item of a list, a paragraph."""
    found: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_fence = line.lstrip().startswith("```")
        begins = not is_code and (is_fence or not line.strip() or line.startswith("#") or ITEM.match(line) is not None
                                  or (line.startswith("|") and not (found and found[0].startswith("|"))))
        if begins and found:
            yield found
            found = []
        if is_code or line.strip():
            found.append(line)
        if is_fence:
            is_code = not is_code
        if found and not is_code and (is_fence or line.startswith("#")):
            yield found
            found = []
    if found:
        yield found


def as_text(text: str, width: int) -> str:
    found: list[str] = []
    was_item = False
    for block in _blocks(text):
        first, item = block[0], ITEM.match(block[0])
        if found and not (was_item and item):
            found.append("")
        was_item = item is not None
        if first.startswith("#"):
            title = _plain(first.lstrip("# "))
            found += [*textwrap.wrap(title, width), ("=" if first.startswith("# ") else "-") * min(len(title), width)]
        elif first.lstrip().startswith("```"):
            found += [f"    {line}".rstrip() for line in block[1:-1]]
        elif first.startswith("|") and len(block) > 1:
            found += _table(block, width)
        elif item:
            indent, mark, words = item.groups()
            head = f"{indent}{mark} "
            found += _wrapped(" ".join([words, *map(str.strip, block[1:])]), width, head, " " * len(head))
        else:
            found += _wrapped(" ".join(map(str.strip, block)), width)
    return "\n".join(found) + "\n"


def show(path: Path, width: int, command: str, is_bold: bool = False) -> str:
    """`is_bold`: headings are, as terminals and less -R know it."""
    text = as_text(with_links(path.read_text(encoding="utf-8"), path.parent, command), width)
    return HEADING.sub("\x1b[1m\\g<0>\x1b[0m", text) if is_bold else text


def main(words: list[str]) -> None:
    """For launch.sh: the page, the width, what the user calls the command, 1 for bold headings."""
    sys.stdout.buffer.write(show(Path(words[0]), int(words[1]), words[2], words[3] == "1").encode())
