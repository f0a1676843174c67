# SPDX-License-Identifier: MIT
"""Rows with two modes, memory touched beforehand, faults beside time: from measurements to what people see."""
import copy
import io
import math
import random

import fake
import pytest
from hakmem_lab import (arms, health, instructions, ledger, model, prepare, publish, records, report, results, rows,
                        session, stats, summary, tables, traits, warm, wording)
from rich.console import Console

ARMS = [model.ArmInfo("hakmem", "hakmem 1", kind="subject"), model.ArmInfo("other", "other 1")]
TWO = [115, 275, 117, 271, 114, 116, 280, 113, 274, 115]  # what one library took on the row survivors


class FakeRun:
    complete = True

    def __init__(self, samples):
        info = model.RowInfo("r", "memory", "r", "", "cpu", "ns/op")
        self.samples = samples
        self.header = type("Header", (), dict(
            id="id", started="now", tier="full", machine={}, rounds=10, threshold=0.01, subject="hakmem", arms=ARMS,
            rows=[info], skipped={}, parts=1))()


def timed(arm, values, faults=50_000, ops=100_000):
    return [{"kind": "time", "row": "r", "arm": arm, "round": turn, "value": float(value), "hwm_kib": 1000,
             "minflt": faults, "cpu_ns": value * ops, "ops": ops} for turn, value in enumerate(values)]


def run_of(mine, others, **more):
    return summary.summarise(FakeRun(timed("hakmem", mine, **more) + timed("other", others)))


def printed(table) -> str:
    out = Console(file=io.StringIO(), width=160)
    out.print(table)
    return out.file.getvalue()


# --- what has two modes ---------------------------------------------------------------------------

@pytest.mark.parametrize("values, found", [
    (TWO, (115, 274.5)),
    ([100, 101, 102, 99, 130, 131], (100.5, 130.5)),  # a step of 1.27 between sides that are close
    ([10.0, 10.1, 9.9, 10.2, 10, 10.1, 9.8, 10, 10.1, 25], None),  # one slow round is no mode
    ([100, 101, 102, 99, 115, 116], None),  # a step of 1.13
    ([1.0, 1.0, 1.0, 1.6], (1.0, 1.6)), ([1.0, 1.2, 1.4], None),  # of few rounds by their range
    ([7.0] * 10, None), ([5.0], None), ([], None), ([0.0, 0.0], None)])
def test_modes(values, found):
    assert stats.modes(values) == (found if found is None else pytest.approx(found))


def test_noise_of_one_mode_is_no_second_one():
    draw = random.Random(3)
    for sigma, most in ((0.02, 0), (0.05, 0), (0.1, 2)):
        many = [stats.modes([math.exp(draw.gauss(0, sigma)) for _ in range(10)]) for _ in range(100)]
        assert sum(found is not None for found in many) <= most


def test_rows_carry_their_modes():
    row = run_of(TWO, [100] * 10).rows[0]
    assert traits.modes(row.cells["hakmem"]) == pytest.approx((115, 274.5)) and traits.has_modes(row)
    assert traits.modes(row.cells["other"]) is None and wording.marks(row) == " ⇅"
    assert not traits.has_modes(run_of([100] * 10, [101] * 10).rows[0])


# --- verdicts -------------------------------------------------------------------------------------

@pytest.mark.parametrize("others, word", [
    (270, "noisy"), (140, "noisy"), (115.5, "no difference"), (105, "worse"), (300, "better")])
def test_a_verdict_stands_only_if_it_holds_in_all_modes(others, word):
    low = [115, 116, 117, 114, 275, 113, 115, 116, 274, 115, 116, 117, 114, 115]  # its median is in the low mode
    found = run_of(low, [others] * len(low)).rows[0].cells["other"].against
    assert found.word == word


def test_with_two_modes_the_mode_met_is_no_go():
    others = [116, 118, 115, 117, 114, 115, 117, 116, 118, 116, 115, 117, 270, 278]
    mine = [275, 271, 280, 274, 273, 276, 272, 277, 274, 275, 273, 274, 115, 117]
    found = run_of(mine, others)
    assert found.rows[0].cells["other"].against.word == "noisy"
    line = ledger.lines(found, ["hakmem", "other"], {})[0]
    assert line.word == "NEUTRAL" and line.texts[0] == "r ⇅"
    assert line.texts[-1] == "NEUTRAL (noisy), 116 | 274 against 116 | 274 ns/op"
    assert ledger.overall([(line.word, line.decisive)]) == "–"  # the ratio met has no part in the mean
    text = ledger.table(with_machine(found), ["hakmem", "other"], {})
    assert "116 \\| 274 against" in text


def with_machine(found):
    found.machine = {"processor": "x", "cpus": "2", "kernel": "6", "glibc": "glibc 2.36"}
    return found


def test_instructions_decide_where_modes_do_not():
    noisy = model.Verdict("noisy", 2.3, 1.0, 2.4, 10)
    assert ledger.decide(noisy, None, 0.01) == ("NEUTRAL", "noisy")
    assert ledger.decide(noisy, model.Verdict("worse", 1.03), 0.01) == ("NO-GO", "instructions")


def test_health_takes_no_mode_for_a_regression():
    def a_run(word):
        cells = {"hakmem": model.Cell("hakmem", 10, 16.0), "glibc": model.Cell(
            "glibc", 10, 10.0, against=model.Verdict(word, 1.6, 1.5, 1.7, 10))}
        row = model.RowSummary(model.RowInfo("r", "small", "r", "", "cpu", "ns/op"), cells)
        return model.RunSummary("i", "", "full", {}, 10, 0.01, "hakmem", [], [row], [])
    then = a_run("worse")
    then.rows[0].cells["hakmem"].time = 8.0
    assert health.regression(a_run("noisy"), then) == [] and "NO-GO" in health.regression(a_run("worse"), then)[0]


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
    return run, row


def test_terminal_prints_both_modes(modal):
    text = printed(tables.modes_table(modal[0]))
    assert "large/1m ⇅" in text and "115 | 275" in text and "240 | 500" in text and "larson" not in text
    times = printed(tables.time_table(modal[0]))
    assert "large/1m ⇅" in times and "⇅ two modes" in times
    assert tables.modes_table(fake.summary()) is None


def test_report_shows_both_modes(modal):
    run, row = modal
    html = report.render(run)
    assert "115 | 275" in html and "large/1m ⇅" in html and "1 row has two modes (⇅): large/1m." in html
    assert "For them 1 pair has no verdict." in html and ">Modes<" in html
    names = wording.labels(run)
    words = " ".join(wording.row_sentences(run, row, names))
    assert "Two modes, in ns/op: hakmem 0.1.0 115 | 275, glibc 2.36 240 | 500." in words
    assert "the modes that the rounds met decide" in wording.compared(model.Verdict("noisy", 0.5, 0.4, 1.1), "X")
    plain = report.render(fake.summary(rows=1))
    assert ">Modes<" not in plain and "two modes (⇅):" not in plain


def test_modes_are_published(modal, tmp_path):
    path = publish.write_csv(modal[0], tmp_path)
    found = next(row for row in publish.read_csv(path).rows if row.row.id == "large/1m")
    assert traits.modes(found.cells["hakmem"]) == (115, 275) and found.cells["glibc"].against.word == "noisy"
    assert found.cells["hakmem"].faults_per_op == 1.25 and {"mode_low", "mode_high"} <= set(results.LATER)
    readme, page = tmp_path / "README.md", tmp_path / "RESULTS.md"
    for one in (readme, page):
        one.write_text(f"{publish.BEGIN}\n{publish.END}\n", encoding="utf-8")
    publish.write_pages(path, readme, page, tmp_path / "lab.svg")
    assert "fetches memory late, mostly): large/1m." in page.read_text(encoding="utf-8")


# --- faults ---------------------------------------------------------------------------------------

def test_rows_that_faults_decide():
    found = run_of([100] * 10, [100] * 10)  # 50 000 faults, 12.5 ms at least, in 10 ms
    assert traits.is_decided_by_faults(found.rows[0]) and found.rows[0].cells["hakmem"].faults_per_op == 0.5
    assert "100 / 0.500" in printed(tables.fault_table(found))
    few = summary.summarise(FakeRun(timed("hakmem", [100] * 3, faults=3000)))  # 0.75 ms
    assert not traits.is_decided_by_faults(few.rows[0]) and tables.fault_table(few) is None


def test_ab_has_the_ratio_of_faults():
    found = run_of([100] * 10, [100] * 10, faults=25_000)
    at = ledger.HEADINGS.index("faults")
    assert ledger.lines(found, ["hakmem", "other"], {})[0].texts[at] == "0.50"
    few = summary.summarise(FakeRun(timed("hakmem", [100] * 3, faults=7) + timed("other", [100] * 3, faults=5)))
    assert ledger.lines(few, ["hakmem", "other"], {})[0].texts[at] == "–"


# --- memory touched beforehand --------------------------------------------------------------------

@pytest.mark.parametrize("peak, available, amount", [
    (200 << 10, 8 << 20, 200 << 10), (warm.LEAST_KIB - 1, 8 << 20, 0), (0, 8 << 20, 0), (4 << 20, 8 << 20, 1 << 20),
    (600 << 10, 400 << 10, 200 << 10)])
def test_amount_to_touch(peak, available, amount):
    assert warm.amount_kib(peak, available) == amount


def test_available_memory_is_read():
    assert warm.available_kib("MemTotal: 9 kB\nMemAvailable:    1234 kB\n") == 1234 and warm.available_kib("x") == 0
    assert warm.available_kib() > 0


@pytest.mark.parametrize("advice", [warm.POPULATE_WRITE, 12345])  # the latter: as on a kernel that does not know it
def test_touching_makes_memory_resident_and_returns_it(monkeypatch, advice):
    resident = []

    class Pool(warm.mmap.mmap):
        def __exit__(self, *_):
            with open("/proc/self/statm", encoding="ascii") as file:
                resident.append(int(file.read().split()[1]) * warm.mmap.PAGESIZE)
            self.close()
    with open("/proc/self/statm", encoding="ascii") as file:
        before = int(file.read().split()[1]) * warm.mmap.PAGESIZE
    monkeypatch.setattr(warm, "POPULATE_WRITE", advice)
    monkeypatch.setattr(warm.mmap, "mmap", Pool)
    warm.touch(32 << 10)
    assert resident and resident[0] - before > 30 << 20
    with open("/proc/self/statm", encoding="ascii") as file:
        assert int(file.read().split()[1]) * warm.mmap.PAGESIZE - before < 8 << 20


@pytest.mark.parametrize("rounds, peak", [(3, 300_000), (2, 1000)])
def test_each_round_begins_with_warm_memory(tmp_path, monkeypatch, rounds, peak):
    asked, order = [], []
    monkeypatch.setattr(warm, "warm", lambda kib: (asked.append(kib), order.append("warm")))

    class Session(session.Session):
        def _measure(self, row, arm, resting):
            order.append(arm.name)
            fields = {"value": 1.0, "hwm_kib": peak if arm.name == "other" else 7}
            return session.Sample(fields, check="1")
    plan = session.Plan([rows.Row(model.RowInfo("r", "memory", "r", "", "cpu", "ns/op"), argv=("x",))],
                        [arms.Arm(info) for info in ARMS], rounds)
    head = records.Header("id", "", "full", {}, rounds, 0.01, "hakmem", ARMS, [row.info for row in plan.rows], {})
    writer = records.Writer(tmp_path / "results.jsonl", head)
    Session(plan, writer).run()
    writer.close()
    assert asked == [peak] * rounds and order.count("warm") == rounds and order[2] == "warm"
    assert Session(plan, writer, records.Run(tmp_path)).peaks == {"r": peak}  # of a run that goes on


def test_rows_without_an_amount_are_not_counted(monkeypatch):
    counted = []
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    monkeypatch.setattr(instructions.arms, "resolve", lambda specs, libs: ARMS)
    monkeypatch.setattr(instructions, "enough", lambda row, arm, scale: scale)
    monkeypatch.setattr(instructions, "per_operation", lambda row, arm, scale: counted.append(row.id) or 1.0)
    instructions.count_rows(prepare.Settings("ab", "quick", ["shift/t1", "drift"], sides=[]), [], print)
    assert set(counted) == {"drift"}
