# SPDX-License-Identifier: MIT
"""`hakmem docs PAGE` on a terminal: nothing but code is wider than it, no mark of Markdown is left, and no word is lost."""
import fcntl
import os
import re
import shutil
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from hakmem_view import docs_page, installed

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SIGNS = re.compile(r"\x1b\[[0-9;]*m")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def shown(path: Path, width: int) -> str:
    return docs_page.show(path, width, "hakmem")


@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_fits_and_has_no_marks_left(path, width):
    text = docs_page.with_links(path.read_text(encoding="utf-8"), DOCS, "hakmem")
    code = {f"    {line}".rstrip() for fence in FENCE.findall(text) for line in fence.splitlines()}
    for line in shown(path, width).splitlines():
        assert len(line) <= width or line in code, line
        assert line in code or not re.search(r"\]\([^)]|^\|.*\||\|---|^#+ \w|<!--|^```", line), line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_word_of_a_page_is_lost(path):
    def letters(text: str) -> str:
        return re.sub(r"[^\w/.]", "", text)
    text = FENCE.sub("", docs_page.with_links(path.read_text(encoding="utf-8"), DOCS, "hakmem"))
    lines = [line for line in text.splitlines() if not line.startswith("|") and not re.match(r" *([-*+]|\d+\.) ", line)]
    found = letters(shown(path, 100))
    assert all(letters(line.lstrip("# ")) in found for line in lines)
    table = sorted(letters(word) for line in text.splitlines() if line.startswith("|") for word in re.split(r"[ |]+", line))
    assert all(word in found for word in table)


def test_links_name_what_shows_their_page(tmp_path):
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.md", "../top.md", "deep/b.md", "c.svg"):
        (folder / name).write_text("")
    for text, ours in (("[a.md](a.md)", "`hakmem docs a`"), ("[`a.md`](a.md#x)", "`hakmem docs a`"),
                       ("[of `x[0]` more](a.md)", "of `x[0]` more (`hakmem docs a`)"), ("[below](#x)", "below"),
                       ("[top](../top.md)", "top (top.md)"), ("[b](deep/b.md)", "b (docs/deep/b.md)"),
                       ("![two\nwords](c.svg)", "Picture: two words (docs/c.svg)"), ("[h](https://x.y/z)", "h (https://x.y/z)"),
                       ("<!-- of a tool -->\nx", "x"), ("`[a](a.md)`", "`[a](a.md)`"), ("```\n[a](a.md)\n```", "```\n[a](a.md)\n```")):
        assert docs_page.with_links(text, folder, "hakmem") == ours


def test_tables_have_columns_lists_hang_and_code_stays():
    text = "# One `two`\n\nA *b* **c**\nd_*e*_f.\n\n| k | right |\n|---|--:|\n| a \\| b | some words, more |\n| `x` | 1 |\n\n" \
        "- an item\n  of lines\n- another\n\n```sh\n  long  code that is wider than all\n```\n"
    assert docs_page.as_text(text, 18) == """One `two`
=========

A b c d_*e*_f.

k            right
-----  -----------
a | b  some words,
              more
`x`              1

- an item of lines
- another

      long  code that is wider than all
"""


def test_table_without_room_has_a_line_for_each_cell():
    text = "| Name | Type | Effect |\n|---|---|---|\n| `one` | counted | it counterfeits |\n| `two` | | more words than a line of it has |\n"
    assert docs_page.as_text(text, 22) == """Name:
`one`
  Type: counted
  Effect: it
    counterfeits
`two`
  Effect: more words
    than a line of it
    has
"""


def on_terminal(columns: int, **environment: str) -> str:
    """What `./hakmem docs words` prints there."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([installed.COMMAND, "docs", "words"], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={**os.environ, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:  # as Linux ends it
            pass
        assert process.wait() == 0
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def shown_here(columns: int) -> str:
    return docs_page.show(DOCS / "words.md", columns, installed.NAME)


def test_command_shows_the_page_at_the_terminals_width(tmp_path):
    for columns in (60, 80):
        said = on_terminal(columns, PAGER="cat", NO_COLOR="1")
        assert said == shown_here(columns)
    said = on_terminal(80, PAGER="cat")
    assert said.startswith("\x1b[1mWords that the tools print\n\x1b[0m====") and "\x1b[1mMemory\n\x1b[0m------\n" in said
    assert SIGNS.sub("", said) == shown_here(80)
    # Without Python the lines are folded.
    for name in ("sh", "dirname", "readlink", "stty", "fold", "cat", "cmp"):
        (tmp_path / name).symlink_to(shutil.which(name))
    said = on_terminal(80, PATH=str(tmp_path), PAGER="cat")
    assert said.startswith("# Words that the tools print\n") and max(map(len, said.splitlines())) <= 80
