# SPDX-License-Identifier: MIT
"""Rows with two modes, memory against live bytes, memory touched beforehand, faults beside time:
what people see of them."""
import copy
import csv

import fake
import pytest
from fake import TWO_ARMS, printed, summarised, timed
from hakmem_lab import (arms, browser, health, instructions, ledger, model, prepare, publish,
                        records,
                        report, results, rows, session, tables, traits, warm, wording)
from page import Page
from test_stats import TWO


def run_of(mine, others=(), faults=50_000):
    """100 000 operations a round."""
    samples = timed("hakmem", mine, minflt=faults) + timed("other", others, minflt=50_000)
    return summarised([{**one, "ops": 100_000, "cpu_ns": one["value"] * 1e5} for one in samples])


# --- verdicts -------------------------------------------------------------------------------------

def test_rows_carry_their_modes():
    row = run_of(TWO, [100] * 10).rows[0]
    assert traits.modes(row.cells["hakmem"]) == pytest.approx((115, 274.5)) and traits.has_modes(row)
    assert traits.modes(row.cells["other"]) is None and wording.marks(row) == " ⇅"
    assert not traits.has_modes(run_of([100] * 10, [101] * 10).rows[0])


@pytest.mark.parametrize("others, word", [
    (270, "noisy"), (140, "noisy"), (115.5, "no difference"), (105, "worse"), (300, "better")])
def test_a_verdict_stands_only_if_it_holds_in_all_modes(others, word):
    low = [115, 116, 117, 114, 275, 113, 115, 116, 274, 115, 116, 117, 114, 115]
    assert run_of(low, [others] * len(low)).rows[0].cells["other"].against.word == word


def test_with_two_modes_the_mode_met_is_no_go():
    others = [116, 118, 115, 117, 114, 115, 117, 116, 118, 116, 115, 117, 270, 278]
    mine = [275, 271, 280, 274, 273, 276, 272, 277, 274, 275, 273, 274, 115, 117]
    found = run_of(mine, others)
    assert found.rows[0].cells["other"].against.word == "noisy"
    line = ledger.lines(found, ["hakmem", "other"], {})[0]
    assert line.word == "NEUTRAL" and line.texts[0] == "r ⇅"
    assert line.texts[-1] == "NEUTRAL (noisy), 116 | 274 against 116 | 274 ns/op"
    assert ledger.overall([(line.word, line.decisive)]) == "–"  # the ratio met has no part in the mean
    found.machine = {"processor": "x", "cpus": "2", "kernel": "6", "glibc": "glibc 2.36"}
    assert "116 \\| 274 against" in ledger.table(found, ["hakmem", "other"], {})


def test_health_takes_no_mode_for_a_regression():
    def a_run(word, time=16.0):
        against = model.Verdict(word, 1.6, 1.5, 1.7, 10)
        cells = {"hakmem": model.Cell("hakmem", 10, time),
                 "glibc": model.Cell("glibc", 10, 10.0, against=against)}
        row = model.RowSummary(model.RowInfo("r", "small", "r", "", "cpu", "ns/op"), cells)
        return model.RunSummary("i", "", "full", {}, 10, 0.01, "hakmem", [], [row], [])
    then = a_run("worse", 8.0)
    assert health.regression(a_run("noisy"), then) == []
    assert "NO-GO" in health.regression(a_run("worse"), then)[0]


# --- what people see ------------------------------------------------------------------------------

@pytest.fixture
def modal():
    """A made-up run whose row large/1m has two modes on two arms, and is decided by faults."""
    run = copy.deepcopy(fake.summary())
    row = next(row for row in run.rows if row.row.id == "large/1m")
    for arm, ends in (("hakmem", (115.0, 275.0)), ("glibc", (240.0, 500.0))):
        row.cells[arm].mode_low, row.cells[arm].mode_high = ends
    row.cells["hakmem"].minflt, row.cells["hakmem"].cpu_ms, row.cells["hakmem"].faults_per_op = 400_000, 500, 1.25
    row.cells["glibc"].against.word = "noisy"
    return run


def published(run, folder):
    """The CSV file, and the page of results made from it."""
    readme, page = folder / "README.md", folder / "RESULTS.md"
    for one in (readme, page):
        one.write_text(f"{publish.BEGIN}\n{publish.END}\n", encoding="utf-8")
    path = publish.write_csv(run, folder)
    publish.write_pages(path, readme, page, folder / "lab.svg")
    return path, page.read_text(encoding="utf-8")


def test_terminal_prints_both_modes(modal):
    text = printed(tables.modes_table(modal))
    assert "large/1m ⇅" in text and "115 | 275" in text and "240 | 500" in text and "larson" not in text
    assert "large/1m ⇅" in printed(tables.time_table(modal))
    assert tables.modes_table(fake.summary()) is None


def test_report_shows_both_modes(modal):
    html = report.render(modal)
    assert "115 | 275" in html and "1 row has two modes (⇅): large/1m." in html
    assert ">Modes<" in html
    row = next(row for row in modal.rows if row.row.id == "large/1m")
    words = " ".join(wording.row_sentences(modal, row, wording.labels(modal)))
    assert "Two modes, in ns/op: hakmem 0.1.0 115 | 275, glibc 2.36 240 | 500." in words
    plain = report.render(fake.summary(rows=1))
    assert ">Modes<" not in plain and "two modes (⇅):" not in plain


def test_modes_are_published(modal, tmp_path):
    path, page = published(modal, tmp_path)
    found = next(row for row in publish.read_csv(path).rows if row.row.id == "large/1m")
    assert traits.modes(found.cells["hakmem"]) == (115, 275) and found.cells["glibc"].against.word == "noisy"
    assert found.cells["hakmem"].faults_per_op == 1.25 and "mostly): large/1m." in page


def test_live_bytes_are_printed_and_said():
    run = fake.summary()
    cell, row = run.rows[7].cells["hakmem"], run.rows[7]
    row.cells["glibc"].failure = "signal 11 (SIGSEGV)"
    text = printed(tables.live_table(run))
    assert f"{tables.number(cell.peak_to_live)} / {tables.number(cell.end_to_live)}" in text
    assert "✕" in text
    words = " ".join(wording.row_sentences(run, row, wording.labels(run)))
    assert f"{wording.short(cell.end_to_live)} × the bytes that live then" in words


@pytest.mark.skipif(browser.find() is None, reason="no chromium is installed")
def test_page_has_live_bytes(tmp_path):
    run = fake.summary()
    report.write_report(run, tmp_path / "report.html")
    page = Page(browser.dump(tmp_path / "report.html"))
    for arm in ("hakmem", "glibc", "jemalloc"):
        cell = run.rows[7].cells[arm]
        for key, value in (("peak", cell.peak_to_live), ("end", cell.end_to_live)):
            shown = page.cells["live:", arm, f"{key}-sawtooth/64m"]
            assert float(shown["value"]) == pytest.approx(value)
            assert shown["text"] == wording.short(value)
    assert 'id="live"' not in report.render(fake.summary(rows=1))


def test_live_bytes_are_published_in_a_sentence(tmp_path):
    run = fake.summary()
    cell = run.rows[7].cells["hakmem"]
    said = f"hakmem 0.1.0 {wording.short(cell.peak_to_live)} / {wording.short(cell.end_to_live)}"
    _, page = published(run, tmp_path)
    assert "RSS / live bytes, geometric means of 1 memory row" in page and said in page
    run.rows = run.rows[:7]
    assert "RSS / live bytes" not in published(run, tmp_path)[1]


def test_files_without_the_later_columns_are_read(tmp_path):
    run = fake.summary()
    path = publish.write_csv(run, tmp_path)
    text = path.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(text) if not line.startswith("# "))
    kept = [name for name in results.COLUMNS if name not in results.LATER]
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("".join(f"{line}\n" for line in text[:at]))
        writer = csv.DictWriter(file, kept, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv.DictReader(text[at:]))
    cell, before = publish.read_csv(path).rows[7].cells["hakmem"], run.rows[7].cells["hakmem"]
    assert cell.end_kib is None and cell.end_to_live is None and cell.minflt == before.minflt


# --- faults ---------------------------------------------------------------------------------------

def test_rows_that_faults_decide():
    found = run_of([100] * 10, [100] * 10, faults=25_000)  # 6 ms at least, in 10 ms
    assert traits.is_decided_by_faults(found.rows[0])
    assert found.rows[0].cells["hakmem"].faults_per_op == 0.25
    assert "100 / 0.250" in printed(tables.fault_table(found))
    at = ledger.HEADINGS.index("faults")
    assert ledger.lines(found, ["hakmem", "other"], {})[0].texts[at] == "0.50"
    few = run_of([100] * 3, faults=3000)  # 0.75 ms
    assert not traits.is_decided_by_faults(few.rows[0]) and tables.fault_table(few) is None
    few = summarised(timed("hakmem", [100] * 3, minflt=7) + timed("other", [100] * 3))
    assert ledger.lines(few, ["hakmem", "other"], {})[0].texts[at] == "–"


# --- memory touched beforehand --------------------------------------------------------------------

@pytest.mark.parametrize("peak, available, amount", [
    (200 << 10, 8 << 20, 200 << 10), (warm.LEAST_KIB - 1, 8 << 20, 0), (0, 8 << 20, 0),
    (4 << 20, 8 << 20, 1 << 20), (600 << 10, 400 << 10, 200 << 10)])
def test_amount_to_touch(peak, available, amount):
    assert warm.amount_kib(peak, available) == amount


def test_available_memory_is_read():
    assert warm.available_kib("MemTotal: 9 kB\nMemAvailable:    1234 kB\n") == 1234
    assert warm.available_kib("x") == 0 and warm.available_kib() > 0


@pytest.mark.parametrize("advice", [warm.POPULATE_WRITE, 12345])  # 12345: as a kernel without it
def test_touching_makes_memory_resident_and_returns_it(monkeypatch, advice):
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * warm.mmap.PAGESIZE
    seen = []

    class Pool(warm.mmap.mmap):
        def __exit__(self, *_):
            seen.append(resident())
            self.close()
    before = resident()
    monkeypatch.setattr(warm, "POPULATE_WRITE", advice)
    monkeypatch.setattr(warm.mmap, "mmap", Pool)
    warm.touch(32 << 10)
    assert seen[0] - before > 30 << 20 and resident() - before < 8 << 20


@pytest.mark.parametrize("rounds, peak", [(3, 300_000), (2, 1000)])
def test_each_round_begins_with_warm_memory(tmp_path, monkeypatch, rounds, peak):
    asked, order = [], []
    monkeypatch.setattr(warm, "warm", lambda kib: (asked.append(kib), order.append("warm")))

    class Session(session.Session):
        def _measure(self, row, arm, resting):
            order.append(arm.name)
            return session.Sample({"value": 1.0, "hwm_kib": peak if arm.name == "other" else 7},
                                  check="1")
    row = rows.Row(model.RowInfo("r", "memory", "r", "", "cpu", "ns/op"), argv=("x",))
    plan = session.Plan([row], [arms.Arm(info) for info in TWO_ARMS], rounds)
    head = records.Header("id", "", "full", {}, rounds, 0.01, "hakmem", TWO_ARMS, [row.info], {})
    writer = records.Writer(tmp_path / "results.jsonl", head)
    Session(plan, writer).run()
    writer.close()
    assert asked == [peak] * rounds and order.count("warm") == rounds and order[2] == "warm"
    assert Session(plan, writer, records.Run(tmp_path)).peaks == {"r": peak}  # of a run that goes on


def test_rows_without_an_amount_are_not_counted(monkeypatch):
    counted = []
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions.arms, "resolve", lambda specs, libs: TWO_ARMS)
    monkeypatch.setattr(instructions, "enough", lambda row, arm, scale: scale)
    monkeypatch.setattr(instructions, "per_operation",
                        lambda row, *_: counted.append(row.id) or 1.0)
    instructions.count_rows(prepare.Settings("ab", "quick", ["shift/t1", "drift"], sides=[]), [], print)
    assert set(counted) == {"drift"}
