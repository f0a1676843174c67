# SPDX-License-Identifier: MIT
"""Pages and pictures: well-formed, complete, self-contained, of bounded size."""
import re
import struct
import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest
from conftest import sample

from hakmem_lab import browser
from hakmem_view import explain_view, map_view, picture
from hakmem_view.model import Explain, Map, Superslab, read

VOID = {"meta", "link", "br", "img", "input"}
LOADS = ("src", "href", "xlink:href", "action", "data", "srcset")
CHROMIUM = pytest.mark.skipif(browser.find() is None, reason="no chromium is installed")


class Page(HTMLParser):
    """Checks that tags close in order; keeps rows of tables, hover texts and what could be loaded."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.rows: list[str] = []  # data-class and data-cause
        self.titles: list[str] = []
        self.loads: list[str] = []
        self.labels: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "title":
            self.titles.append("")
        self.rows += [found[key] for key in ("data-class", "data-cause") if key in found]
        self.labels += [found["aria-label"]] if "aria-label" in found else []
        self.loads += [found[key] for key in LOADS if key in found]
        self.loads += [tag] if tag in ("script", "iframe", "object", "embed", "link") else []

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "title":
            self.titles[-1] += data


def check_alone(text: str) -> Page:
    """Needs nothing from anywhere."""
    page = Page(text)
    assert page.loads == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert re.findall(r"https?://[^\s\"<]+", text.replace("http://www.w3.org/2000/svg", "")) == []
    assert '"DejaVu Sans"' in text  # a style is not escaped
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    return page


@pytest.fixture
def written(view, tmp_path):
    """written("map", "--html", address) → the file that came of it, and nothing else did."""
    def run(command: str, option: str, address, **more):
        path, what = tmp_path / "file", "page" if option == "--html" else "picture"
        done = view(command, option, path, address, **more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"hakmem: {what}: {path}\n")
        return path
    return run


def heap(superslabs: int = 0) -> Map:
    """The sample, or made-up superslabs of 64 slabs each."""
    found = sample("map")
    if superslabs:
        found["superslabs"] = [
            {"base": hex(0x7f0000000000 + (at << 22)), "huge_pages": at % 4,
             "spans": [{"unit": unit, "units": 1, "kind": "slab", "bytes": 16 << (at + unit) % 8,
                        "blocks": 1000 >> unit % 8,
                        "live": (at * unit) % (1 + (1000 >> unit % 8)), "capacity": 1000} for unit in range(64)]}
            for at in range(superslabs)]
        found["huge"] = [{"base": hex(at << 30), "bytes": at << 20, "kind": "huge"} for at in range(1, superslabs)]
    return read(Map.of, found, "it")


def test_map_page_has_every_slab_and_class(program, written):
    one = program()
    text = written("map", "--html", one.pid).read_text(encoding="utf-8")
    page = check_alone(text)
    assert "Price of each keep time: units" in text and text.count("data-keep=") == 24
    spans = [span for superslab in heap().superslabs for span in superslab.spans]
    assert set(page.rows) == {str(span.bytes) for span in spans if span.is_slab}
    cells = [title for title in page.titles if title.startswith("unit")]
    assert sorted(cells) == sorted(map(picture.span_title, spans))
    assert any(title.startswith("0x7f3a90000000: 48.0 MiB") for title in page.titles)
    assert any(str(one.pid) in title for title in page.titles)


def test_explain_page_has_every_cause(program, written):
    text = written("explain", "--html", program().pid).read_text(encoding="utf-8")
    found = sample("explain")
    assert check_alone(text).rows == [cause["name"] for cause in found["causes"] if cause["bytes"]]
    assert found["text"] in text and "Lower retain_min." in text and "The causes sum to" not in text
    assert all(f"Price of each keep time: {pool['pool']}" in text for pool in found["learner"])
    assert re.findall(r'data-keep="([^"]+)" class="first"', text) == ["0.8 s", "0.4 s"]
    text = written("explain", "--html", program("on").pid).read_text(encoding="utf-8")
    check_alone(text)
    assert text.count(">Held by</th>") == 1 and "program+0x1100: 9.00\u00a0MiB</td>" in text


def test_explain_page_says_that_the_sum_is_off():
    causes = [{"name": "live", "bytes": 97 << 20}]
    text = explain_view.html(Explain.of({"schema": 1, "rss_bytes": 100 << 20, "causes": causes}),
                             "it")
    assert "The causes sum to 97.0 MiB, 3.00 MiB less than RSS" in text
    assert "Most of it: live" in text
    assert "Held by" not in text


@pytest.mark.parametrize("command", ["map", "explain"])
@pytest.mark.parametrize("mode", ["evil", "sparse"])
def test_pages_run_nothing_from_outside_and_miss_nothing(program, written, command, mode):
    text = written(command, "--html", program(mode).pid).read_text(encoding="utf-8")
    assert Page(text).loads == [] and "\x1b" not in text


def test_pictures_are_well_formed_and_explain_themselves(program, written):
    tree = xml.etree.ElementTree.parse(written("map", "--svg", program().pid))
    assert tree.getroot().tag.endswith("svg")
    found = heap()
    found.rss_bytes = 100 << 20
    for rows, alone in ((picture.ROWS, False), (2, True)):
        text, _ = picture.draw(found, "a < b & c", rows=rows, is_alone=alone)
        assert xml.etree.ElementTree.fromstring(text).tag.endswith("svg")
    for words in ("solid: in use (caches included)", "pale: never used", f"hakmem {found.version}"):
        assert words in text
    assert re.search(r"RSS 100 MiB, \d{4}-\d\d-\d\d \d\d:\d\d", text) and "huge blocks" in text
    found.huge = []
    assert "huge blocks" not in picture.draw(found, "it")[0]


def test_cells_are_filled_by_what_is_live():
    text = {"base": "0x10", "spans": [{"unit": 0, "units": 2, "kind": "slab", "bytes": 48, "capacity": 100}]}
    for live, blocks, filled, carved in ((0, 100, 0, 1), (50, 80, .5, .8), (100, 100, 1, 1), (1, 1, 1 / 14, .01)):
        text["spans"][0].update(live=live, blocks=blocks)
        cell = picture.lay_out(Map("", 0, 65536, 64, [Superslab.of(text)], [])).rows[0].cells[0]
        assert cell.live == pytest.approx(filled * picture.HEIGHT, abs=0.1)
        assert cell.carved == pytest.approx(carved * picture.HEIGHT, abs=0.1)
        assert cell.width == 2 * picture.CELL - 1 and cell.look == "g0"


def test_rows_that_look_the_same_are_one():
    found = heap(6)
    first = found.superslabs[0]
    found.superslabs[1:4] = [Superslab(f"0x{at}", first.huge_pages, list(first.spans)) for at in range(3)]
    drawn = picture.lay_out(found)
    assert len(drawn.rows) == 3 and drawn.rows[0].value.endswith("3 more")
    assert "the next 3 look the same" in drawn.rows[0].title


@pytest.mark.parametrize("superslabs", [2_000, 6_000])
def test_page_of_many_superslabs_is_bounded(superslabs):
    big = heap(superslabs)
    text = map_view.html(big, "big")
    assert len(text) < 6 << 20 and f"of {superslabs} with most free room" in text
    drawn = picture.lay_out(big)
    assert len(drawn.squares) == (superslabs if superslabs <= picture.GRID else superslabs // 2)
    assert sum(len(row.cells) for row in drawn.rows) <= picture.CELLS and len(drawn.rows) == picture.CELLS // 64
    assert len(drawn.bars) == picture.BARS
    least = min(superslab.free_bytes for superslab in picture.chosen(big))
    assert sum(superslab.free_bytes > least for superslab in big.superslabs) < len(drawn.rows)


@CHROMIUM
def test_png_has_the_whole_picture(program, written):
    data = written("map", "--png", program().pid, timeout=600).read_bytes()
    drawn = picture.lay_out(heap(), rows=map_view.PNG_ROWS)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (2 * drawn.width, 2 * drawn.height)


MEASURE = """<pre></pre><script>
document.querySelector("pre").textContent = [...document.querySelectorAll(".scroll")].filter(one => one.ariaLabel != "Picture")
  .map(one => one.scrollWidth > one.clientWidth ? "cut: " + one.textContent.slice(0, 60) : "whole").join();
</script></body>"""


@CHROMIUM
@pytest.mark.parametrize("width", [1280, 480])
@pytest.mark.parametrize("command, mode", [("map", "ok"), ("explain", "on")])
def test_no_table_is_cut(program, written, tmp_path, command, mode, width):
    path = tmp_path / "measured.html"
    text = written(command, "--html", program(mode).pid).read_text(encoding="utf-8").replace("&#39;", "'")
    path.write_text(text.replace("default-src 'none'", "script-src 'unsafe-inline'").replace("</body>", MEASURE), encoding="utf-8")
    out = re.search(r"<pre>(.*?)</pre>", browser.dump(path, budget_ms=5000, width=width), re.S)[1]
    assert set(out.split(",")) == {"whole"}, out
