# SPDX-License-Identifier: MIT
"""`hakmem fit`: the search, the decision at one limit, the groups of control groups in both versions, and whole runs."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_real import ROOT

from hakmem_command import fit, groups, main
from hakmem_view.errors import ViewError

MIB = 1 << 20


def ran(wall=1.0, cpu=1.0, **more) -> groups.Ran:
    return groups.Ran(**{"status": 0, "wall": wall, "cpu": cpu, "waits": 0, "peak": 40 * MIB, **more})


def arm_of(*free: groups.Ran) -> fit.Arm:
    return fit.Arm("one", "", list(free) or [ran()], 40 * MIB)


@pytest.mark.parametrize("least", [fit.STEP, 3 * MIB + 1, 39 * MIB, 40 * MIB, 49 * MIB])
def test_search_comes_within_its_precision_in_few_steps(least):
    tried = []
    found = fit.search(lambda size: tried.append(size) or size >= least, 40 * MIB)
    assert least <= found <= least + max(fit.STEP, fit.PRECISION * found) + fit.STEP
    assert least <= 40 * MIB or min(tried) == 40 * MIB  # less than what did not fit is not tried
    assert len(tried) <= 14 and all(size % fit.STEP == 0 for size in tried)


def test_search_gives_up_where_even_more_than_the_peak_does_not_fit():
    tried = []
    assert fit.search(lambda size: tried.append(size), 40 * MIB) is None
    assert max(tried) == 50 * MIB


class Group:
    """Answers with what it was given."""

    about = "answers"

    def __init__(self, *answers):
        self.answers, self.runs = list(answers), []

    def run(self, run, limit=0):
        self.runs.append((run, limit))
        return self.answers.pop(0)


@pytest.mark.parametrize("answers,fits", [
    ([ran(), ran()], True), ([ran(cpu=1.2), ran(), ran()], True), ([ran(cpu=1.2), ran(), ran(killed=True)], False),
    ([ran(status=-9), ran(status=-9)], False), ([ran(late=True), ran(status=1)], False)])
def test_most_runs_at_a_limit_decide(tmp_path, answers, fits):
    group, arm = Group(*answers), arm_of()
    one = fit.Fit(["prog"], group, 10.0, {}, tmp_path)
    assert one.fits(arm, 30 * MIB) == fits and not group.answers
    assert [limit for _, limit in group.runs] == [30 * MIB] * len(answers)
    assert arm.points == [fit.Point(30 * MIB, fits, arm.points[0].ratios)]


def test_waiting_for_a_processor_does_not_count_and_for_a_disk_does():
    arm = arm_of(ran(waits=3), ran(wall=1.1, cpu=1.0), ran(wall=0.9, cpu=1.0))
    assert arm.ratio(ran(wall=9.0, cpu=1.05, waits=3)) == pytest.approx(1.05)
    assert arm.ratio(ran(wall=9.0, cpu=1.05, waits=4)) == pytest.approx(9.0)


def test_a_library_is_preloaded_and_the_users_preload_is_not(tmp_path):
    group = Group(ran(), ran())
    one = fit.Fit(["prog"], group, 10.0, {"A": "b"}, tmp_path)
    one.measure(fit.Arm("other", "/lib/other.so"))
    one.measure(fit.Arm("C library", ""))
    assert [run.env for run, _ in group.runs] == [{"A": "b", "LD_PRELOAD": "/lib/other.so"}, {"A": "b"}]


def proc(folder: Path, mounts: str, own: str) -> Path:
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "mountinfo").write_text(mounts)
    (folder / "self" / "cgroup").write_text(own)
    return folder


def test_groups_of_version_2_lie_where_memory_is_passed_on(tmp_path):
    tree = tmp_path / "groups"
    own = tree / "user" / "shell"
    own.mkdir(parents=True)
    for place, names in ((tree, "cpu memory"), (tree / "user", "cpu memory"), (own, "")):
        (place / "cgroup.subtree_control").write_text(names)
    (own / "cgroup.subtree_control").chmod(0o444)
    fake = proc(tmp_path / "proc", f"30 1 0:26 / {tree} rw - cgroup2 cgroup2 rw\n", "0::/user/shell\n")
    found = groups.folders(fake)
    assert (tree / "user", 2) in [(one.parent, one.version) for one in found]
    assert (tree, 2) in [(one.parent, one.version) for one in found]


def test_limits_of_memory_that_were_asked_for_are_given_back(tmp_path):
    tree = tmp_path / "cgroup"
    (tree / "shell").mkdir(parents=True)
    had, lacked = tree / "cgroup.subtree_control", tree / "shell" / "cgroup.subtree_control"
    had.write_text("cpu memory")
    lacked.write_text("")
    groups.folders(proc(tmp_path / "proc", f"30 1 0:26 / {tree} rw - cgroup2 cgroup2 rw\n", "0::/shell\n"))
    assert lacked.read_text() == "+memory"
    groups.give_back()
    assert (had.read_text(), lacked.read_text()) == ("cpu memory", "-memory") and not groups.ASKED


def test_groups_of_version_1_lie_within_our_own(tmp_path):
    tree = tmp_path / "memory"
    (tree / "box").mkdir(parents=True)
    mounts = (f"31 1 0:27 / {tmp_path}/cpu rw - cgroup cgroup rw,cpu\n"
              f"32 1 0:28 / {tree} rw - cgroup cgroup rw,memory\n33 1 0:29 / /x rw - ext4 /dev/x rw\n")
    found = groups.folders(proc(tmp_path / "proc", mounts, "4:memory:/box\n0::/\n"))
    assert [(one.parent, one.version) for one in found] == [(tree / "box", 1), (tree, 1)]


@pytest.mark.parametrize("version,limit,event", [
    (2, "memory.max", "memory.events"), (1, "memory.limit_in_bytes", "memory.oom_control")])
def test_limit_and_kills_of_a_group(tmp_path, version, limit, event):
    one = groups.Folder(tmp_path, version)
    one._limit(tmp_path, 12345)
    assert (tmp_path / limit).read_text() == "12345"
    (tmp_path / event).write_text("low 0\noom_kill 0\n")
    assert not one._killed(tmp_path)
    (tmp_path / event).write_text("low 0\noom_kill 2\n")
    assert one._killed(tmp_path)


def test_a_run_that_is_late_is_ended(tmp_path):
    run = groups.Run(["sleep", "1000"], dict(os.environ), tmp_path / "errors", timeout=0.1)
    assert run.go([]).late


def test_a_kernel_without_descriptors_of_processes_is_polled(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    run = groups.Run(["sh", "-c", "echo why >&2; exit 3"], dict(os.environ), tmp_path / "errors")
    done = run.go([])
    assert (done.status, done.late, done.words) == (3, False, "why")
    late = groups.Run(["sleep", "1000"], dict(os.environ), tmp_path / "errors", timeout=0.1).go([])
    assert late.late and late.status == -9


def command(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-B", ROOT / "tools" / "command.py", "fit", *words], capture_output=True,
                          text=True, timeout=600, check=False)


HOLDS = "b = bytearray(24 << 20); b[::4096] = b'x' * len(b[::4096])"


@pytest.mark.parametrize("name", ["all.json", "-"])
def test_whole_command(tmp_path, name):
    file = name if name == "-" else str(tmp_path / name)
    done = command("--json", file, "--only", "C library", "--", sys.executable, "-c", HOLDS)
    assert done.returncode == 0, done
    text, table = (done.stdout, done.stderr) if name == "-" else (Path(file).read_text(encoding="utf-8"), done.stdout)
    found, = json.loads(text)["allocators"]
    assert found["peak_bytes"] > 24 * MIB and not found["failure"] and "C library" in table
    if "No limit could be set" not in table:
        assert found["limits"] and all(one["fits"] for one in found["limits"] if one["bytes"] == found["least_bytes"])
        assert found["least_bytes"] is None or found["least_bytes"] > 24 * MIB


@pytest.mark.parametrize("words,says", [
    (["--", "no-such-program"], "no program 'no-such-program'"), (["--slow", "x", "--", "true"], "'x' is no percentage"),
    (["--slow", "0", "--", "true"], "from 1% to 1000%"), (["--only", "frob", "--", "true"], "no allocator 'frob'"),
    (["--with", "a=/nowhere", "--", "true"], "the file must be there"), ([], "PROGRAM"),
    (["--json", "/gone/x", "--", "true"], "cannot write /gone/x: there is no folder /gone"),
    (["--only", "C library", "--", "false"], "ends with status 1 without a limit")])
def test_what_cannot_be_is_one_line(words, says):
    done = command(*words)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done


def test_a_page_that_cannot_be_drawn_is_told_before_the_program_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)  # its import fails
    monkeypatch.setattr(fit, "_check", pytest.fail)
    with pytest.raises(ViewError, match="--html needs the Python package plotly"):
        main.run(["fit", "--html", str(tmp_path / "x.html"), "--", "true"])


def test_a_static_program_is_refused(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    if subprocess.run(["cc", "-static", "-o", tmp_path / "a", tmp_path / "a.c"], check=False).returncode:
        pytest.skip("no static C library")
    assert "linked statically" in command("--", str(tmp_path / "a")).stderr
