# SPDX-License-Identifier: MIT
"""Memory against live bytes: peak to live, end to live, from measurements to what people see. And rows that have to be
named, as the long ones of these are."""
import copy
import csv
import io
import math

import fake
import pytest
from page import Page
from rich.console import Console

from hakmem_lab import arms, browser, execute, micro, model, peers, prepare, publish, report, results, rows
from hakmem_lab import summary, tables, wording
from hakmem_lab.means import held, live_rows

ARMS = [model.ArmInfo("hakmem", "hakmem 1", kind="subject"), model.ArmInfo("other", "other 1")]
RESULT = {"bench": "x", "ideal": 0, "malloc": "x.so", "ops": 10, "wall_ns": 50, "cpu_ns": 40, "check": "1",
          "live_peak": 4096, "hwm_kib": 8, "live_end": 1024, "rss_live_kib": 6}


class FakeRun:
    complete = True

    def __init__(self, infos, samples):
        self.samples = samples
        self.header = type("Header", (), dict(
            id="id", started="now", tier="full", machine={}, rounds=3, threshold=0.01, subject="hakmem", arms=ARMS,
            rows=infos, skipped={}, parts=1))()


def a_row(name, group="memory", named=False):
    return rows.Row(model.RowInfo(name, group, name, "", "cpu", "ns/op"), argv=("prog", "3"), named=named)


def measured(row, arm, ends):
    """One round for each RSS at the end."""
    return [{"kind": "time", "row": row, "arm": arm, "round": turn, "value": 1.0, "hwm_kib": 8192, "minflt": 5,
             "cpu_ns": 2e6, "live_peak": 4096 * 1024, "live_end": 1024 * 1024, "rss_live_kib": end}
            for turn, end in enumerate(ends)]


# --- from the workload's result to the ratios -----------------------------------------------------

def test_the_workloads_figures_are_kept():
    fields = execute._micro_fields(a_row("x"), RESULT)
    assert (fields["live_end"], fields["rss_live_kib"], fields["live_peak"]) == (1024, 6, 4096)


def test_ratios_are_of_medians():
    infos = [a_row("x").info, a_row("y", "small").info]
    known, unknown = measured("x", "hakmem", [3000, 2048, 1000]), measured("x", "other", [0]) + \
        measured("y", "hakmem", [0])
    for sample in unknown:  # a workload that does not state what lives at its end has neither field
        del sample["live_end"], sample["rss_live_kib"]
    found = summary.summarise(FakeRun(infos, known + unknown))
    cell = found.rows[0].cells["hakmem"]
    assert (cell.end_kib, cell.end_to_live, cell.peak_to_live) == (2048, 2.0, 2.0)
    other = found.rows[0].cells["other"]
    assert other.end_kib is None and other.end_to_live is None and other.peak_to_live == 2.0
    assert [row.row.id for row in live_rows(found)] == ["x"]


def test_memory_runs_serve_where_no_time_was_measured():
    samples = measured("x", "hakmem", [4096])
    samples[0]["kind"] = "memory"
    assert summary.summarise(FakeRun([a_row("x").info], samples)).rows[0].cells["hakmem"].end_to_live == 4.0


def test_means_are_over_the_same_rows_for_all():
    run = fake.summary()
    second = copy.deepcopy(run.rows[7])
    second.row.id = "sawtooth/1g"
    del second.cells["scudo"]
    second.cells["glibc"].end_to_live = 1.0
    run.rows.append(second)
    found = held(run)
    assert [row.row.id for row in found.rows] == ["sawtooth/64m", "sawtooth/1g"]
    assert "scudo" not in found.arms and "ideal" not in found.arms and next(iter(found.arms)) == "glibc"
    assert found.arms["glibc"][1] == pytest.approx(math.sqrt(run.rows[7].cells["glibc"].end_to_live))
    assert held(fake.summary(rows=7)).arms == {}


# --- what people see ------------------------------------------------------------------------------

def printed(table) -> str:
    out = Console(file=io.StringIO(), width=160)
    out.print(table)
    return out.file.getvalue()


def test_table_has_allocators_beside_each_other():
    run = fake.summary()
    run.rows[7].cells["glibc"].failure = "signal 11 (SIGSEGV)"
    lines = {line.split("│")[1].strip(): line for line in printed(tables.live_table(run)).splitlines() if "│" in line}
    cell = run.rows[7].cells["hakmem"]
    assert f"{tables.number(cell.peak_to_live)} / {tables.number(cell.end_to_live)}" in lines["hakmem"]
    assert "✕" in lines["glibc"] and {"mimalloc", "jemalloc"} <= lines.keys() and "hakmem~again" not in lines


def test_row_says_it_in_words():
    run = fake.summary()
    row, names = run.rows[7], wording.labels(run)
    cell = row.cells["hakmem"]
    assert f"; at the end of the work {wording.memory(cell.end_kib)}, {wording.short(cell.end_to_live)} × the bytes " \
           "that live then" in " ".join(wording.row_sentences(run, row, names))


@pytest.mark.skipif(browser.find() is None, reason="no chromium is installed")
def test_page_has_the_table(tmp_path):
    run = fake.summary()
    report.write_report(run, tmp_path / "report.html")
    page = Page(browser.dump(tmp_path / "report.html"))
    for arm in ("hakmem", "glibc", "jemalloc"):
        cell = run.rows[7].cells[arm]
        for key, value in (("peak", cell.peak_to_live), ("end", cell.end_to_live)):
            shown = page.cells["live:", arm, f"{key}-sawtooth/64m"]
            assert float(shown["value"]) == pytest.approx(value) and shown["text"] == wording.short(value)


def test_page_without_such_rows_has_no_table():
    assert 'id="live"' in report.render(fake.summary()) and 'id="live"' not in report.render(fake.summary(rows=1))


def test_page_of_results_says_it_in_a_sentence(tmp_path):
    run = fake.summary()
    cell = run.rows[7].cells["hakmem"]
    for rest, words in ((run.rows, f"hakmem 0.1.0 {wording.short(cell.peak_to_live)} / "
                                   f"{wording.short(cell.end_to_live)}"), (run.rows[:7], "")):
        readme, page = tmp_path / "README.md", tmp_path / "RESULTS.md"
        for one in (readme, page):
            one.write_text(f"{publish.BEGIN}\n{publish.END}\n", encoding="utf-8")
        run.rows = rest
        path = publish.write_csv(run, tmp_path)
        publish.write_pages(path, readme, page, tmp_path / "lab.svg")
        text = page.read_text(encoding="utf-8")
        assert ("RSS / live bytes, geometric means of 1 memory row" in text) == bool(words) and words in text


# --- results of before ----------------------------------------------------------------------------

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
    assert cell.end_kib is None and cell.end_to_live is None
    assert cell.peak_to_live == pytest.approx(before.peak_to_live, rel=1e-5) and cell.minflt == before.minflt


# --- rows that have to be named -------------------------------------------------------------------

def test_long_rows_are_taken_by_their_whole_id_only():
    known = [a_row("day"), a_row("day/60s", named=True), a_row("drift")]
    short = ["day", "drift"]
    assert [row.id for row in rows.select(known, [])] == short
    assert [row.id for row in rows.select(known, ["memory"])] == [row.id for row in rows.select(known, ["d*"])] == short
    assert [row.id for row in rows.select(known, ["day"])] == ["day"]
    assert [row.id for row in rows.select(known, ["day/60s", "drift"])] == ["day/60s", "drift"]
    assert rows.select([rows.on_newest(known[1])], ["day/60s"])[0].id == "day/60s@newest"
    assert rows.select([rows.on_musl(known[1])], ["day/60s"])[0].id == "day/60s@musl"


@pytest.mark.parametrize("tier, base, command", [("full", "", "run"), ("quick", "", "run"), ("full", "newest", "run"),
                                                 ("quick", "", "ab"), ("full", "musl", "run")])
def test_long_rows_are_in_no_matrix(tier, base, command):
    chosen = prepare.chosen_rows(prepare.Settings(command, tier, peers=["glibc"], base=base))
    assert chosen and not any(row.named for row in chosen)


def test_rows_on_musl_are_workloads_alone_and_have_peers_of_their_own():
    settings = prepare.Settings("run", "full", base="musl")
    chosen = prepare.chosen_rows(settings)
    assert {row.base for row in chosen} == {"musl"} and not any(row.app or row.ideal for row in chosen)
    assert {"larson/t4@musl", "start_up@musl"} <= {row.id for row in chosen}
    assert [spec.name for spec in prepare._specs(settings)] == ["hakmem", *peers.MUSL]
    found = peers.Found(peers.catalogue()["mimalloc"], library="/x.so", label="mimalloc")
    ours = peers.Found(peers.catalogue()["hakmem"], library="/y.so", label="hakmem")
    assert "musl" not in arms._arm(arms.Spec("mimalloc", "mimalloc"), found).bases
    assert "musl" in arms._arm(arms.Spec("hakmem", "hakmem"), ours).bases
    musl = peers.Base("musl", "musl 1.2.3")
    own = peers.Found(peers.catalogue()["musl"], label="musl")
    assert arms._arm(arms.Spec("musl", "musl"), own).launch(musl).preloaded() == ""  # "libc.so.6" is glibc's
    assert arms._arm(arms.Spec("hakmem", "hakmem"), ours).launch(musl).preloaded() == "/y.so"


@pytest.mark.parametrize("named, expected", [
    ([], [*peers.DEFAULT, "mine"]),
    (["glibc"], ["glibc", "mine"]),
    (["mine", "glibc"], ["mine", "glibc"]),
    (["mine+learn:0"], ["mine+learn:0"]),
    (["/y/libother.so"], ["other", "mine"]),
    (["/x.so"], ["x"]),
])
def test_a_library_joins_whatever_peers_are_named(named, expected):
    settings = prepare.Settings("run", "full", peers=named, libs={"mine": "/x.so"})
    prepare.chosen_rows(settings)
    assert [spec.name for spec in prepare._specs(settings)] == ["hakmem", *expected]


def test_long_rows_of_the_table():
    named = [row for row in micro.catalogue() if row.named]
    assert {"survivors/10s", "day/60s"} <= {row.id for row in named} and not any(row.quick for row in named)
    assert prepare.chosen_rows(prepare.Settings("run", "rows", ["day/60s"]))[0].named
    assert not {row.id for row in named} & (micro.newest() | micro.steady())


@pytest.mark.parametrize("named, seconds", [(True, execute.LONG_TIMEOUT), (False, execute.TIMEOUT)])
def test_long_rows_have_time(monkeypatch, named, seconds):
    asked = []

    def run_rig(argv, launch, how, *, env, timeout):
        asked.append(timeout)
        return execute.Ran({"timeout": True}, b"", b"")
    monkeypatch.setattr(execute, "run_rig", run_rig)
    launch = type("Launch", (), {"env": {}, "library": ""})()
    assert execute.measure(a_row("x", named=named), launch).failure == f"no end after {seconds} s"
    assert asked == [seconds]


def test_report_of_one_row_has_at_most_two_megabytes():
    """Nearly all of it is plotly.js, which has 4.9."""
    assert len(report.render(fake.summary(rows=1)).encode()) < 2_100_000
