# SPDX-License-Identifier: MIT
"""What people see of a run: figures, report, pictures."""
import copy
import dataclasses
import json
import math
import re

import fake
import pytest
from page import Page

from hakmem_lab import browser, figures, palette, png, report, wording
from hakmem_lab.errors import LabError
from hakmem_lab.model import Latency, RunSummary, Verdict
from hakmem_lab.placing import Box, Point, place_labels, ratio_ticks

CHROMIUM = pytest.mark.skipif(browser.find() is None, reason="no chromium is installed")


@pytest.fixture(scope="module")
def summary() -> RunSummary:
    return fake.summary()


@pytest.fixture(scope="module")
def html(summary) -> str:
    return report.render(summary)


@pytest.fixture(scope="module")
def page(summary, tmp_path_factory) -> Page:
    """The report as a browser has it after its scripts have run."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.write_report(summary, path)
    return Page(browser.dump(path))


def embedded(html: str, name: str):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.S)[1])


# --- in the browser -------------------------------------------------------------------------------

@CHROMIUM
def test_page_draws_everything_without_an_error(page, html):
    plots = len(re.findall(r'class="plot[ "]', html))
    assert page.root["data-errors"] == "0"
    assert page.root["data-ready"] == "1"
    assert page.root["data-plots"] == str(plots) == str(page.drawn)
    assert plots == 5 + sum(1 for key in embedded(html, "figures") if re.match(r"(curve|latency)-", key))


@CHROMIUM
def test_page_runs_nothing_that_came_from_outside(page, summary):
    assert page.title == f"Lab run {summary.id}"
    text = page.cells["arms:", "snmalloc", "failure"]["text"]
    assert text == f"Not measured: cannot be built: no C++ 20 compiler {fake.EVIL}"
    assert page.cells["left-out:", "app/z3", "failure"]["text"] == f"missing z3 {fake.EVIL}"


@CHROMIUM
@pytest.mark.parametrize("key, value, mean", [("heat-time", "time_ratio", "time_mean"),
                                              ("heat-peak", "peak_ratio", "peak_mean")])
def test_heat_map_shows_the_summary(page, summary, key, value, mean):
    arms = palette.shown(summary)
    expected = []
    for row in summary.rows:
        for arm in arms:
            cell = row.cells.get(arm.name)
            number = getattr(cell, value) if cell else None
            expected.append("✕" if cell and cell.failure else "–" if number is None else f"{number:.2f}")
    means = {one.name: getattr(one, mean) for one in summary.means}
    expected += [f"{means[arm.name]:.2f}" if arm.name in means else "–" for arm in arms]
    assert page.figures[key] == expected


@CHROMIUM
def test_tables_show_the_summary(page, summary):
    columns = {"time": ("time", 1), "time-ratio": ("time_ratio", 1), "peak": ("peak_kib", 1024),
               "peak-ratio": ("peak_ratio", 1), "average": ("average_kib", 1024), "after": ("after_kib", 1024),
               "peak-to-live": ("peak_to_live", 1), "faults": ("minflt", 1), "cpu": ("cpu_ms", 1),
               "end": ("end_kib", 1024), "end-to-live": ("end_to_live", 1)}
    seen = 0
    for row in summary.rows:
        for cell in row.cells.values():
            table = f"numbers:{row.row.id}"
            if cell.failure:
                assert page.cells[table, cell.arm, "failure"]["text"] == f"✕ {cell.failure}"
                continue
            for column, (name, scale) in columns.items():
                value, shown = getattr(cell, name), page.cells.get((table, cell.arm, column))
                if value is None:
                    assert shown is None or shown["text"] == "–"
                else:
                    assert float(shown["value"]) == pytest.approx(value / scale)
                    text = shown["text"].replace(wording.THIN, "")
                    assert float(text) == pytest.approx(value / scale, rel=0.006, abs=0.006)
                    seen += 1
            if cell.against:
                assert page.cells[table, cell.arm, "verdict"]["text"] == cell.against.word
    assert seen > 500
    means = {mean.name: mean for mean in summary.means}
    shown = float(page.cells["overall:", "hakmem", "time"]["text"])
    assert shown == pytest.approx(means["hakmem"].time_mean, abs=0.006)


@CHROMIUM
def test_pictures_are_drawn(summary, tmp_path):
    small = dataclasses.replace(summary, rows=summary.rows[:2])
    names = [path.name for path in png.write_pngs(small, tmp_path / "new")]
    assert names == ["heat-time.png", "heat-peak.png", "scatter.png", "latency-random_mixed-400.png",
                     "curve-random_mixed-100k.png"]
    for name in names:
        data = (tmp_path / "new" / name).read_bytes()
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and width >= 1200 and height >= 300


def test_pictures_without_a_browser_say_what_to_install(summary, tmp_path, monkeypatch):
    monkeypatch.setattr(browser, "find", lambda: None)
    with pytest.raises(LabError, match="apt-get install chromium"):
        png.write_pngs(summary, tmp_path)
    report.write_report(fake.summary(rows=1), tmp_path / "report.html")  # needs none


# --- the file -------------------------------------------------------------------------------------

def test_report_loads_nothing(html):
    rest = re.sub(r'<script type="text/plain" id="library">.*?</script>', "", html, flags=re.S)
    assert "http:" not in rest and "https:" not in rest
    assert all(link.startswith("#") or link == "data:," for link in Page(rest).links)
    assert "default-src 'none'" in rest
    assert html.count('<script type="text/plain" id="library">') == 1


def _keep(summary, *names):
    for row in summary.rows:
        row.cells = {name: cell for name, cell in row.cells.items() if name in names}


def _nothing_known(summary):
    for row in summary.rows:
        row.again, row.best_time, row.best_peak = None, "", ""
        for name, cell in row.cells.items():
            row.cells[name] = type(cell)(name, 1, against=Verdict("not measured"))
    for mean in summary.means:
        mean.time_mean = mean.peak_mean = math.nan


def _all_fail(summary):
    for row in summary.rows:
        for cell in row.cells.values():
            cell.failure = "no end after 60 s"
            cell.time = cell.time_ratio = cell.peak_kib = cell.peak_ratio = None


ODD = {
    "alone": lambda summary: _keep(summary, "hakmem"),
    "without subject": lambda summary: _keep(summary, "glibc", "mimalloc"), "nothing known": _nothing_known,
    "all fail": _all_fail,
    "no rows": lambda summary: summary.rows.clear(), "no means": lambda summary: summary.means.clear(),
    "no latency": lambda summary: summary.latency.clear(),
    "stopped": lambda summary: setattr(summary, "complete", False),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_runs_have_a_report(odd):
    summary = copy.deepcopy(fake.summary(rows=3))
    ODD[odd](summary)
    html = report.render(summary)
    assert "How it was measured" in html
    assert ("This run is not complete" in html) == (odd == "stopped")


# --- words ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("verdict, text", [
    (Verdict("better", 0.966, 0.95, 0.98), "3.4 % less time than X"),
    (Verdict("worse", 1.12, 1.1, 1.14), "12 % more time than X"),
    (Verdict("worse", 2.31, 2.2, 2.4), "2.3 × the time of X"),
    (Verdict("no difference", 0.998, 0.99, 1.01), "no measurable difference from X: ratio 0.998 (0.990–1.010)"),
    (Verdict("not measured", 1.5), "1.50 × the time of X, without a verdict: too few rounds"),
    (Verdict("not measured"), "not compared with X: too few rounds"),
])
def test_comparison_in_words(verdict, text):
    assert wording.compared(verdict, "X") == text


def test_row_in_words(summary):
    names = wording.labels(summary)
    words = {row.row.id: " ".join(wording.row_sentences(summary, row, names)) for row in summary.rows}
    assert re.match(r"hakmem 0.1.0: [\d.]+ ns/op, .* than the (next|fastest) \(\w+ [\d.]+\)",
                    words["random_mixed/400"])
    assert "The A/A pair agrees within ±0.4 %." in words["random_mixed/400"]
    assert "jemalloc 5.3.0 failed: signal 11 (SIGSEGV)." in words["larson/t4"]
    assert "The A/A pair differs: ratio 1.031 (1.012–1.049). The row is noisy" in words["xmalloc/t2"]


# --- figures --------------------------------------------------------------------------------------

def test_labels_do_not_overlap():
    area, points = Box(0, 0, 760, 460), [Point(200 + 3 * at, 200 + 2 * at, f"allocator {at}") for at in range(13)]
    boxes = []
    for point, label in zip(points, place_labels(points, area)):
        width, left = len(point.text) * 7.4, {"left": 0, "center": 0.5, "right": 1}[label.anchor]
        boxes.append(Box(label.x - left * width, label.y - 8, label.x + (1 - left) * width, label.y + 8))
    assert all(box.within(area) for box in boxes)
    assert not any(a.meets(b) for at, a in enumerate(boxes) for b in boxes[:at])


@pytest.mark.parametrize("high", [1.1, 1.7, 3.1, 12, 900])
def test_ticks_have_room(high):
    ticks = ratio_ticks(0.98, high, 500)
    assert ticks[0] == 1 and len(ticks) >= 2
    assert all(math.log(b / a) * 500 / math.log(high / 0.98) > 40 for a, b in zip(ticks, ticks[1:]))


def test_percentiles_from_a_histogram():
    counts = [(10, 900), (20, 90), (400, 9), (8192, 1)]
    xs, ys = figures.percentile_points(Latency("row", "arm", {"max": 5100}, counts))
    assert xs == pytest.approx([0, 1, 2, 3, 3]) and ys == [10, 10, 20, 400, 5100]
    assert figures.percentile_points(Latency("row", "arm", {"50": 10, "99": 30, "max": 99}, [])) == \
        (pytest.approx([figures.nines(0.5), 2]), [10, 30])
