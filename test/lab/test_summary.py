# SPDX-License-Identifier: MIT
"""From measurements to figures, on made-up measurements whose figures are known."""
import copy
import math

import fake
import pytest
from fake import summarised
from hakmem_lab import execute, prepare, session, summary, wording
from hakmem_lab.arms import Arm
from hakmem_lab.means import held, live_rows
from hakmem_lab.model import ArmInfo, RowInfo
from hakmem_lab.rows import Row

ARMS = [ArmInfo("hakmem", "hakmem 1", kind="subject"), ArmInfo("hakmem~again", "again", kind="again"),
        ArmInfo("fast", "fast 1"), ArmInfo("bad", "bad 1"), ArmInfo("ideal", "ideal", kind="ideal"),
        ArmInfo("none", "none", skip="no cargo")]
RESULT = {"bench": "x", "ideal": 0, "malloc": "x.so", "ops": 10, "wall_ns": 50, "cpu_ns": 40,
          "check": "1",
          "live_peak": 4096, "hwm_kib": 8, "live_end": 1024, "rss_live_kib": 6}


def a_row(name, group):
    return Row(RowInfo(name, group, "", "", "cpu", "ns/op"), argv=("x",))


def one_row(noise=0.001, group="small", again=10.0):
    samples = [{"kind": "failure", "row": "r", "arm": "bad", "round": 0,
                "reason": "signal 11 (SIGSEGV)"}]
    for arm, value, peak in (("hakmem", 10, 1100), ("hakmem~again", again, 1100), ("fast", 8, 2200),
                             ("ideal", 2, 900)):
        values = [value * (1 + noise * (turn % 3 - 1)) for turn in range(10)]
        samples += fake.timed(arm, values, hwm_kib=peak, live_peak=512 * 1024)
    return summarised(samples, group, ARMS)


def test_figures_of_a_row():
    """Ratios are to the best allocator, which the ideal is not; verdicts are the subject's."""
    found = one_row()
    row, cells = found.rows[0], found.rows[0].cells
    assert row.best_time == "fast" and row.best_peak == "hakmem"
    assert cells["hakmem"].time_ratio == pytest.approx(1.25)
    assert cells["ideal"].time_ratio == pytest.approx(0.25)
    assert cells["fast"].peak_ratio == pytest.approx(2.0)
    assert cells["hakmem"].peak_to_live == pytest.approx(1100 / 512)
    assert cells["fast"].against.word == "worse"
    assert cells["fast"].against.ratio == pytest.approx(1.25)
    assert cells["hakmem"].against is None and row.again.word == "no difference" and not row.noisy
    bad = cells["bad"]
    assert bad.failure.startswith("signal 11") and bad.time is None and bad.time_ratio is None
    assert [(mean.name, mean.failures) for mean in found.means] == [("hakmem", 0), ("fast", 0),
                                                                    ("bad", 1)]


def test_a_differing_aa_pair_makes_a_row_noisy():
    assert one_row(again=10.5).rows[0].noisy
    assert one_row(noise=0.05).rows[0].noisy == (one_row(noise=0.05).rows[0].noise > 0.02)


def test_the_average_leaves_the_rest_out():
    curve = [(0.0, 100.0), (100.0, 100.0), (200.0, 300.0), (300.0, 10.0), (1300.0, 10.0)]
    assert summary.working_average(curve, 1000) == pytest.approx((100 * 200 + 300 * 100) / 300)
    assert summary.working_average([(0.0, 0.0), (5.0, 7.0)], 1000) is None


def of_peer(time, peak):
    """The row with a peer of this time and peak beside a subject of 10 and 1000."""
    samples = []
    for arm, value, kib in (("hakmem", 10, 1000), ("hakmem~again", 10, 1000), ("fast", time, peak), ("ideal", 1, 1)):
        samples += fake.timed(arm, [value * (1 + 0.001 * (turn % 3 - 1)) for turn in range(10)], hwm_kib=kib,
                              live_peak=512 * 1024)
    return summarised(samples, "small", ARMS)


@pytest.mark.parametrize("time, peak, is_beaten", [
    (8, 900, True), (10, 900, True), (8, 1000, True), (10, 1000, False), (8, 1100, False), (12, 900, False),
    (12, 1100, False)])
def test_a_row_is_dominated_by_who_is_no_worse_at_both_and_better_at_one(time, peak, is_beaten):
    found = of_peer(time, peak)
    assert found.rows[0].dominators == (["fast"] if is_beaten else [])
    assert wording.beaten(found) == f"Beaten at both time and peak RSS on {int(is_beaten)} of 1 row"


# --- rows of single calls -------------------------------------------------------------------------

def test_single_calls_have_percentiles_and_stay_out_of_the_means():
    samples = [{**fake.timed("hakmem", [1])[0], "round": turn, "histogram": [[10, 1], [20, turn]],
                "latency": {"both": {"50": 10 + turn, "max": 100 * (turn + 1)}}}
                for turn in range(3)]
    found = summarised(samples, "latency")
    assert found.latency[0].percentiles == {"50": 11, "max": 200}
    assert found.latency[0].histogram == [(10.0, 3), (20.0, 3)]
    assert [(mean.rows, mean.first) for mean in found.means] == [(0, 0)] * 2


def test_rounds_of_single_calls_are_few_and_without_memory():
    plan = session.Plan([a_row("a", "small"), a_row("b", "latency")], [Arm(ARMS[0])], 10)
    assert [plan.rounds_of(row) for row in plan.rows] == [10, 3] and plan.measurements() == 11 + 3


@pytest.mark.parametrize("command, has", [("run", True), ("latency", True), ("ab", False)])
def test_which_commands_time_single_calls(command, has):
    chosen = prepare.chosen_rows(prepare.Settings(command, "full", peers=["glibc"]))
    groups = {row.info.group for row in chosen}
    assert ("latency" in groups) == has and (groups == {"latency"}) == (command == "latency")


# --- memory against live bytes --------------------------------------------------------------------

def ending(arm, ends, **more):
    """One round for each RSS at the end."""
    found = fake.timed(arm, [1] * len(ends), hwm_kib=8192, live_peak=4096 * 1024, **more)
    return [{**one, "live_end": 1024 * 1024, "rss_live_kib": end} for one, end in zip(found, ends)]


def test_ratios_are_of_medians():
    fields = execute._micro_fields(a_row("x", "memory"), RESULT)
    assert (fields["live_end"], fields["rss_live_kib"], fields["live_peak"]) == (1024, 6, 4096)
    unstated = fake.timed("other", [1], hwm_kib=8192, live_peak=4096 * 1024)
    found = summarised(ending("hakmem", [3000, 2048, 1000]) + unstated)
    cell, other = found.rows[0].cells["hakmem"], found.rows[0].cells["other"]
    assert (cell.end_kib, cell.end_to_live, cell.peak_to_live) == (2048, 2.0, 2.0)
    assert other.end_kib is None and other.end_to_live is None and other.peak_to_live == 2.0
    assert len(live_rows(found)) == 1 and not live_rows(summarised(unstated))


def test_memory_runs_serve_where_no_time_was_measured():
    samples = ending("hakmem", [4096], kind="memory")
    assert summarised(samples).rows[0].cells["hakmem"].end_to_live == 4.0


def test_means_are_over_the_same_rows_for_all():
    run = fake.summary()
    second = copy.deepcopy(run.rows[7])
    second.row.id = "sawtooth/1g"
    del second.cells["scudo"]
    second.cells["glibc"].end_to_live = 1.0
    run.rows.append(second)
    found = held(run)
    assert [row.row.id for row in found.rows] == ["sawtooth/64m", "sawtooth/1g"]
    assert not {"scudo", "ideal"} & set(found.arms) and next(iter(found.arms)) == "glibc"
    first = run.rows[7].cells["glibc"].end_to_live
    assert found.arms["glibc"][1] == pytest.approx(math.sqrt(first))
    assert held(fake.summary(rows=7)).arms == {}
