# SPDX-License-Identifier: MIT
"""results.jsonl: written at once, read back, continued."""
import dataclasses
import json
import os

import pytest
from hakmem_lab import machine, place, prepare, records, session, store, whole
from hakmem_lab.arms import Arm
from hakmem_lab.errors import LabError
from hakmem_lab.execute import Sample
from hakmem_lab.model import ArmInfo, RowInfo
from hakmem_lab.rows import Row
from hakmem_lab.summary import summarise

ARMS = [Arm(ArmInfo("hakmem", "hakmem 0.1", kind="subject", sha256="aa")),
        Arm(ArmInfo("hakmem~again", "hakmem 0.1 (again)", kind="again", sha256="aa")),
        Arm(ArmInfo("other", "other 1", sha256="bb")), Arm(ArmInfo("gone", "gone", skip="no cargo"))]
ROWS = [Row(RowInfo(name, "small", name, "", "cpu", "ns/op"), argv=("x",)) for name in ("one", "two")]
SAMPLES = 2 * 3 * 4  # rows, arms, rounds and a run for memory


def plan(rounds=3):
    return session.Plan(list(ROWS), list(ARMS), rounds)


def header(rounds=3):
    return records.Header("id", "2026-01-01", "quick", {"cpus": "2"}, rounds, 0.01, "hakmem",
                          [arm.info for arm in ARMS], [row.info for row in ROWS], {}, 1.0, programs="bench-1")


class Fake(session.Session):
    """A session whose measurements are made up; it stops after `limit` of them."""

    limit = 10**9
    bad: dict = {}

    def _measure(self, row, arm, resting):
        self.count = getattr(self, "count", 0) + 1
        if self.count > self.limit:
            raise KeyboardInterrupt
        if (row.id, arm.name) in self.bad:
            return self.bad[row.id, arm.name]
        value = {"hakmem": 10.0, "hakmem~again": 10.01, "other": 12.0}[arm.name]
        fields = {"value": value, "wall_ns": 1, "cpu_ns": 1, "ops": 1, "hwm_kib": 1000, "minflt": 3, "live_peak": 0}
        if resting is not None:
            fields.update(peak_kib=1000, average_kib=900.0, after_kib=500, curve=[[0, 10], [5, 1000]])
        return Sample(fields, check="c0ffee")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "results.jsonl"


def measure(path, previous=None, **fields) -> records.Run:
    """What the file has after a session, which goes on with a previous one if there is one."""
    writer = records.Writer(path) if previous else records.Writer(path, header())
    run = Fake(plan(), writer, *[previous] * (previous is not None))
    vars(run).update(fields)
    try:
        run.run()
    except KeyboardInterrupt:
        pass
    writer.close()
    return records.Run(path)


def test_round_trip(path):
    run = measure(path)
    assert run.complete and run.header.arms[3].skip == "no cargo"
    assert len(run.of("time")) == 2 * 3 * 3 and len(run.of("memory")) == 2 * 3
    summary = summarise(records.Run(path.parent))
    cell = summary.rows[0].cells["other"]
    assert cell.time == 12.0 and cell.time_ratio == pytest.approx(1.2) and cell.after_kib == 500
    assert summary.rows[0].best_time == "hakmem" and cell.against.word in ("better", "no difference")
    assert cell.curve == [(0.0, 10.0), (5.0, 1000.0)]


@pytest.mark.parametrize("stop", [0, 1, 4, 11, 17, 23])
def test_resume_measures_what_is_missing_and_nothing_twice(path, stop):
    previous = measure(path, limit=stop)
    assert not previous.complete
    run = measure(path, previous)
    keys = [(one["kind"], one["row"], one["arm"], one["round"]) for one in run.samples]
    assert run.complete and len(keys) == len(set(keys)) == SAMPLES


def test_a_cut_line_is_measured_again(path):
    measure(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]) + lines[-2][:20])
    previous = records.Run(path)
    assert len(previous.samples) == SAMPLES - 1 and len(measure(path, previous).samples) == SAMPLES
    for line in path.read_text().splitlines():
        json.loads(line)


def test_failure_ends_an_arms_part_in_the_row_only(path):
    run = measure(path, bad={("one", "other"): Sample(failure="signal 11 (SIGSEGV)")})
    summary = summarise(run)
    cell = summary.rows[0].cells["other"]
    assert cell.failure == "signal 11 (SIGSEGV)" and cell.time is None
    assert summary.rows[1].cells["other"].time == 12.0 and len(run.of("failure")) == 1
    assert [mean.failures for mean in summary.means if mean.name == "other"] == [1]


@pytest.mark.parametrize("checks, wrong", [
    ("hakmem:bad hakmem~again:bad other:good third:good", ["hakmem", "hakmem~again"]),
    ("hakmem:bad hakmem~again:bad glibc:good",
     ["hakmem", "hakmem~again"])])  # a tie: the C library decides
def test_the_vote_decides_whose_output_is_wrong(path, checks, wrong):
    checks = dict(one.split(":") for one in checks.split())
    kinds = {"hakmem": "subject", "hakmem~again": "again"}
    arms = [ArmInfo(name, name, kind=kinds.get(name, "peer")) for name in checks]
    writer = records.Writer(path, dataclasses.replace(header(1), arms=arms))
    for arm, check in checks.items():
        writer.add("time", row="one", arm=arm, round=0, value=1.0, hwm_kib=1, check=check)
    writer.close()
    cells = summarise(records.Run(path)).rows[0].cells
    assert {name: cell.failure for name, cell in cells.items()} == {
        name: "output differs" if name in wrong else "" for name in checks}


@pytest.mark.parametrize("change", ["library", "arguments", "scale", "programs"])
def test_other_things_than_then_are_not_continued(path, change):
    records.Writer(path, header()).close()
    session.require_same(records.Run(path), plan(), "bench-1")
    changed, programs = plan(), "bench-1"
    if change == "library":
        changed.arms[2] = Arm(ArmInfo("other", "other 1", sha256="cc"))
    elif change == "arguments":
        changed.rows[0] = Row(RowInfo("one", "small", "one", "", "cpu", "ns/op", program="x 7"), argv=("x", "7"))
    elif change == "scale":
        changed.scale = 0.5
    else:
        programs = "bench-2"
    with pytest.raises(LabError, match="cannot be continued"):
        session.require_same(records.Run(path), changed, programs)


def test_full_disk_is_one_clear_line(path):
    writer = records.Writer(path, header())
    writer.file.close()
    writer.file = open("/dev/full", "ab", buffering=0)
    with pytest.raises(LabError, match="disk is full.*--resume"):
        writer.add("end")


def test_results_file_appears_whole_with_its_header_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"
    with pytest.raises(LabError, match="cannot write"):
        records.Writer(path)  # nothing to go on with
    assert list(tmp_path.iterdir()) == []
    seen = []
    rename = whole.os.rename
    monkeypatch.setattr(whole.os, "rename", lambda *names: (seen.append(path.exists()), rename(*names)))
    records.Writer(path, header()).close()
    assert seen == [False] and records.Run(path).header == header() and list(tmp_path.iterdir()) == [path]

    def full(*_):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(whole.os, "rename", full)
    with pytest.raises(LabError, match=f"cannot write {path}: No space"):
        records.Writer(path, dataclasses.replace(header(), id="other"))
    assert records.Run(path).header.id == "id" and list(tmp_path.iterdir()) == [path]


def test_file_that_is_replaced_stays_a_link_with_its_mode_and_a_pipe_is_written_to(tmp_path):
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    whole.write(link, "new")
    assert link.is_symlink() and file.read_text() == "new" and file.stat().st_mode & 0o777 == 0o640
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
        whole.write(pipe, b"through")
        assert reading.read() == b"through" and pipe.is_fifo()
    before = os.umask(0o027)
    whole.write(tmp_path / "fresh", "")
    os.umask(before)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("text, said", [('{"kind":"end"}\n', "no header"), ("nonsense\n", "line 1"),
                                        (None, "cannot read")])
def test_no_header_and_no_json_are_refused(tmp_path, text, said):
    if text is not None:
        (tmp_path / "results.jsonl").write_text(text)
    with pytest.raises(LabError, match=said):
        records.Run(tmp_path / "results.jsonl")


def test_order_is_drawn_turned_round_and_the_same_for_every_run():
    arms = [Arm(ArmInfo(name, name)) for name in "abcdefghijkl"]
    orders, again = ([[arm.name for arm in session.order(arms, "row", turn)] for turn in range(40)]
                     for _ in "12")
    assert all(orders[turn + 1] == orders[turn][::-1] for turn in range(0, 40, 2))
    assert all(sorted(order) == sorted(orders[0]) for order in orders) and orders == again
    assert len({order[0] for order in orders}) > 8


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "RUNS", tmp_path)
    records.Writer(tmp_path / "1-good" / records.NAME, header()).close()
    for name, text in (("2-cut", '{"kind":"ru'), ("3-strange", "{}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / records.NAME).write_text(text)
    assert prepare.find_run("", unfinished=True).name == "1-good"


def test_machines_have_names_and_are_not_mixed():
    here = machine.fingerprint()
    machine.require_same(here, dict(here), "a run")
    with pytest.raises(LabError, match="kernel"):
        machine.require_same(here, {**here, "kernel": "1.0"}, "a run")
    processor = "AMD EPYC 9B14 96-Core Processor (family/model/stepping 25/17/1)"
    found = machine.kind({"architecture": "x86_64", "cpus": "2", "processor": processor})
    assert found == "x86_64-amd-epyc-9b14-2cpu"
    assert machine.parse_cpuinfo("processor : 0\nmodel name\t: AMD  EPYC\n") == "AMD EPYC"
    assert machine.parse_cpuinfo("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n") == "CPU 0x41 0xd0c"


def test_the_fastest_run_of_a_round_counts():
    samples = [Sample({"value": value, "hwm_kib": kib}, check="c") for value, kib in ((3.0, 5), (1.0, 7), (2.0, 9))]
    best = session.best_of(samples)
    assert best.fields == {"value": 1.0, "hwm_kib": 9, "values": [3.0, 1.0, 2.0]} and not best.failure
    assert session.best_of([samples[0], Sample(failure="signal 6 (SIGABRT)")]).failure.startswith("signal 6")
    assert session.best_of([samples[0], Sample({"value": 1.0}, check="d")]).failure == "output differs from run to run"


@pytest.mark.parametrize("group, argv, scale, repeats", [
    ("small", ("x", "300*"), 1, 3), ("small", ("x", "3*"), 1, 3), ("small", ("x", "3*"), 0.5, 1),
    ("memory", ("x", "300*"), 1, 1), ("small", ("x", "300"), 1, 1), ("app", (), 1, 1)])
def test_which_rows_are_divided(group, argv, scale, repeats):
    assert Row(RowInfo("r", group, "", "", "cpu", "ns/op"), argv=argv).repeats(scale) == repeats


def test_a_library_is_kept_under_each_name_it_comes_by(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "LAB", tmp_path / "lab")
    one, other = tmp_path / "one.so", tmp_path / "other.so"
    for path in (one, other):
        path.write_bytes(b"the same")
    kept = [store.keep_file(path) for path in (one, other, one)]
    assert [path.name for path in kept] == ["one.so", "other.so", "one.so"] and kept[0] == kept[2]
    assert all(path.read_bytes() == b"the same" for path in kept)
