# SPDX-License-Identifier: MIT
"""From measurements to figures, on made-up measurements whose figures are known."""
import pytest
from hakmem_lab import prepare, session, stats, summary
from hakmem_lab.arms import Arm
from hakmem_lab.model import ArmInfo, RowInfo
from hakmem_lab.rows import Row

ARMS = [ArmInfo("hakmem", "hakmem 1", kind="subject"), ArmInfo("hakmem~again", "again", kind="again"),
        ArmInfo("fast", "fast 1"), ArmInfo("bad", "bad 1"), ArmInfo("ideal", "ideal", kind="ideal"),
        ArmInfo("none", "none", skip="no cargo")]


class FakeRun:
    def __init__(self, rows, samples, complete=True):
        self.samples, self.complete = samples, complete
        self.header = type("Header", (), dict(
            id="id", started="now", tier="full", machine={}, rounds=10, threshold=0.01, subject="hakmem", arms=ARMS,
            rows=rows, skipped={}, parts=3))()


def timed(row, arm, value, peak=1000, noise=0.0):
    return [{"kind": "time", "row": row, "arm": arm, "round": turn, "value": value * (1 + noise * (turn % 3 - 1)),
             "hwm_kib": peak, "minflt": 5, "cpu_ns": 2e6, "live_peak": 512 * 1024} for turn in range(10)]


def one_row(noise=0.001, group="small", again=10.0):
    row = RowInfo("r", group, "r", "", "cpu", "ns/op")
    samples = (timed("r", "hakmem", 10.0, 1100, noise) + timed("r", "hakmem~again", again, 1100, noise)
               + timed("r", "fast", 8.0, 2200, noise) + timed("r", "ideal", 2.0, 900, noise)
               + [{"kind": "failure", "row": "r", "arm": "bad", "round": 0, "reason": "signal 11 (SIGSEGV)"}])
    return summary.summarise(FakeRun([row], samples))


def test_ratios_are_to_the_best_allocator_and_ideal_is_none():
    row = one_row().rows[0]
    assert row.best_time == "fast" and row.best_peak == "hakmem"
    assert row.cells["hakmem"].time_ratio == pytest.approx(1.25)
    assert row.cells["ideal"].time_ratio == pytest.approx(0.25)
    assert row.cells["fast"].peak_ratio == pytest.approx(2.0)
    assert row.cells["hakmem"].peak_to_live == pytest.approx(1100 / 512)


def test_verdicts_are_the_subjects_against_each():
    row = one_row().rows[0]
    assert row.cells["fast"].against.word == "worse" and row.cells["fast"].against.ratio == pytest.approx(1.25)
    assert row.cells["hakmem"].against is None
    assert row.again.word == "no difference" and not row.noisy


def test_failed_arms_have_no_figures_and_count_as_failures():
    found = one_row()
    cell = found.rows[0].cells["bad"]
    assert cell.failure.startswith("signal 11") and cell.time is None and cell.time_ratio is None
    assert [mean.failures for mean in found.means if mean.name == "bad"] == [1]
    assert [mean.name for mean in found.means] == ["hakmem", "fast", "bad"]


def test_a_differing_aa_pair_makes_a_row_noisy():
    assert one_row(again=10.5).rows[0].noisy
    assert one_row(noise=0.05).rows[0].noisy == (one_row(noise=0.05).rows[0].noise > 0.02)


def test_rows_of_single_calls_stay_out_of_the_means():
    found = one_row(group="latency")
    assert [(mean.rows, mean.first) for mean in found.means] == [(0, 0)] * 3


def test_the_average_leaves_the_rest_out():
    curve = [(0.0, 100.0), (100.0, 100.0), (200.0, 300.0), (300.0, 10.0), (1300.0, 10.0)]
    assert summary.working_average(curve, 1000) == pytest.approx((100 * 200 + 300 * 100) / 300)
    assert summary.working_average([(0.0, 0.0), (5.0, 7.0)], 1000) is None


def test_latency_percentiles_are_medians_of_the_runs():
    row = RowInfo("latency/x", "latency", "x", "", "cpu", "ns/op")
    samples = [{"kind": "time", "row": "latency/x", "arm": "hakmem", "round": turn, "value": 1.0, "hwm_kib": 1,
                "latency": {"both": {"50": 10 + turn, "max": 100 * (turn + 1)}}, "histogram": [[10, 1], [20, turn]]}
               for turn in range(3)]
    found = summary.summarise(FakeRun([row], samples)).latency[0]
    assert found.percentiles == {"50": 11, "max": 200} and found.histogram == [(10.0, 3), (20.0, 3)]


def test_rounds_of_single_calls_are_few_and_without_memory():
    rows = [Row(RowInfo(name, group, "", "", "cpu", "ns/op"), argv=("x",)) for name, group in
            (("a", "small"), ("b", "latency"))]
    plan = session.Plan(rows, [Arm(ARMS[0])], 10)
    assert [plan.rounds_of(row) for row in rows] == [10, 3] and plan.measurements() == 11 + 3


@pytest.mark.parametrize("command, has", [("run", True), ("latency", True), ("ab", False)])
def test_which_commands_time_single_calls(command, has):
    groups = {row.info.group for row in prepare.chosen_rows(prepare.Settings(command, "full", peers=["glibc"]))}
    assert ("latency" in groups) == has and (groups == {"latency"}) == (command == "latency")


def test_noise_of_few_rounds_is_the_worst_one():
    assert stats.noise([1.0, 1.2, 0.9]) == pytest.approx(0.2)
