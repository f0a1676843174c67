# SPDX-License-Identifier: MIT
"""Throughput by threads: curves with known answers, and a bundle that runs where nothing of this project is."""
from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml

import pytest

from hakmem_lab import cli, micro, place, scale_bundle, scale_run, scale_show
from hakmem_lab.errors import LabError, UsageError

ROWS = "larson stress exchange ring day mixed epoch pool".split()


# --- curves ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("curve, where", [
    ({1: 10, 2: 20, 4: 40}, None), ({1: 10, 2: 12, 4: 40}, 1), ({1: 10, 2: 14, 4: 16, 8: 10}, 2),
    ({2: 10, 4: 13}, None), ({8: 10, 12: 12}, None), ({8: 10, 12: 11}, 8), ({1: 10}, None), ({}, None)])
def test_where_it_stops_scaling(curve, where):
    """12 threads are 0.58 of a doubling of 8."""
    assert scale_show.stop(curve) == where


def test_numbers_of_threads(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(32)))
    for quota, count in (("", 32), ("max 100000", 32), ("1600000 100000", 16), ("150000 100000", 2)):
        monkeypatch.setattr(scale_run, "_read", lambda path, quota=quota: quota)
        assert scale_run.cpus() == count
    assert [scale_run.thread_counts(cpus) for cpus in (1, 2, 3, 16, 24)] == [
        [1], [1, 2], [1, 2, 3], [1, 2, 4, 8, 16], [1, 2, 4, 8, 16, 24]]
    assert scale_run.numbers("") == [] and scale_run.numbers("1,16") == [1, 16]
    for wrong in ("x", "1,", "0", "1,0", "-1"):
        with pytest.raises(UsageError):
            scale_run.numbers(wrong)


def results(folder, samples):
    """A folder of results of two arms on one row: (threads, arm, million operations a second or a failure)."""
    arms = [{"name": name, "label": f"{name} 1", "kind": kind}
            for name, kind in (("hakmem", "subject"), ("hakmem~again", "again"), ("other", "peer"))]
    (folder / scale_show.RUN).write_text(json.dumps({
        "machine": {"cpus": "4", "processor": "a <processor>"}, "seconds": 1, "arms": arms,
        "rows": [{"id": "r", "title": "a row"}, {"id": "never", "title": "not measured"}]}))
    with open(folder / scale_show.SAMPLES, "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, scale_show.COLUMNS, "")
        writer.writeheader()
        for threads, arm, said in samples:
            fields = {"failure": said} if isinstance(said, str) else {
                "ops": int(said * 1e6), "wall_ns": 10 ** 9, "hwm_kib": 2048 * threads, "check": "1"}
            writer.writerow({"row": "r", "threads": threads, "arm": arm, **fields})
    return folder


def test_tables_and_picture(tmp_path):
    out = results(tmp_path, [(1, "hakmem", 9), (1, "hakmem", 10), (1, "hakmem", 11), (2, "hakmem", 20),
                             (4, "hakmem", 40), (1, "other", 10), (2, "other", 11), (4, "other", "it crashed"),
                             (1, "hakmem~again", 10)])
    text = scale_show.write(out)
    assert (out / scale_show.TABLES).read_text() == text
    lines = {line.split("  ")[0]: line.split() for line in text.partition("r: a row")[2].splitlines()}
    assert lines["threads"][:5] == ["threads", "1", "2", "4", "speed-up"]
    assert lines["hakmem 1"][2:] == ["10.0*", "20.0*", "40.0*", "4.00", "–", "2.00", "8.00"]
    assert lines["other 1"][2:] == ["10.0*", "11.0", "–", "–", "1", "2.00", "–"]
    assert "r, 4 threads, other: it crashed" in text and "never" not in text
    drawn = xml.fromstring((out / scale_show.PICTURE).read_text())
    said = {node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"r", "hakmem 1", "hakmem~again 1", "other 1", "4"} <= said


def test_no_results(tmp_path):
    with pytest.raises(LabError, match="no results"):
        scale_show.write(tmp_path)
    text = scale_show.write(results(tmp_path, [(1, "hakmem", "it crashed")]))  # cut off at its beginning
    assert "r, 1 thread, hakmem: it crashed" in text and not (tmp_path / scale_show.PICTURE).exists()


# --- the bundle -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """An unpacked one, with a library that does not serve malloc."""
    here = tmp_path_factory.mktemp("scale")
    source = here / "idle.c"
    source.write_text("int nothing;\n")
    idle = here / "libidle.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", idle, source], check=True)
    micro.build()
    found = scale_bundle.find(["glibc"], {}, print)
    scale_bundle.fill(here / "folder", found)
    archive = here / "bundle.tar.gz"
    scale_bundle.pack(here / "folder", archive)
    with tarfile.open(archive) as file:
        assert {name.split("/")[0] for name in file.getnames()} == {scale_bundle.NAME}
        assert all(entry.uid == 0 and entry.uname == "" for entry in file.getmembers())
        file.extractall(here)
    return here / scale_bundle.NAME, idle


def start(folder, *words):
    """With the standard library alone, and nothing of the caller's environment."""
    return subprocess.run([sys.executable, "-S", "-E", "scale.py", *words], cwd=folder, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin"}, timeout=1800, check=False)


def test_content(bundle):
    folder, _ = bundle
    plan = json.loads((folder / scale_run.PLAN).read_text())
    assert [row["id"] for row in plan["rows"]] == ROWS
    assert [arm["name"] for arm in plan["arms"]] == ["hakmem", "hakmem~again", "glibc"]
    for row in plan["rows"]:
        assert row["argv"].count("T") == 1 and os.access(folder / "bin" / row["argv"][0], os.X_OK)
    for arm in plan["arms"][:2]:
        assert (folder / arm["library"]).read_bytes()[:4] == b"\x7fELF" and len(arm["sha256"]) == 64
    for path in [folder / "scale.py", folder / scale_run.PLAN, *(folder / "hakmem_lab").iterdir()]:
        assert str(place.ROOT) not in path.read_text() and str(place.LAB) not in path.read_text(), path


def test_it_runs_alone(bundle, tmp_path):
    folder, _ = bundle
    out = tmp_path / "out"
    done = start(folder, "--threads", "1,2", "--repetitions", "1", "--seconds", "0.002", "--minutes", "99", "--timeout",
                 "900", "--out", str(out))
    assert done.returncode == 0, done.stderr
    with open(out / scale_show.SAMPLES, encoding="utf-8", newline="") as file:
        samples = list(csv.DictReader(file))
    least = {row["id"]: row.get("least", 1) for row in micro.scale_rows()}
    wanted = {(row, str(threads), arm) for row in ROWS for threads in (1, 2) if threads >= least[row]
              for arm in ("hakmem", "hakmem~again", "glibc")}
    assert {(one["row"], one["threads"], one["arm"]) for one in samples} == wanted and len(samples) == len(wanted)
    assert all(one["failure"] == "" and int(one["ops"]) > 0 and int(one["hwm_kib"]) > 0 for one in samples)
    assert done.stdout.rstrip() == (out / scale_show.TABLES).read_text().rstrip()
    assert all(f"{row}: " in done.stdout for row in ROWS) and "processor: " in done.stdout
    xml.parse(out / scale_show.PICTURE)
    libc = json.loads((out / scale_show.RUN).read_text())["arms"][2]
    assert libc["label"] == os.confstr("CS_GNU_LIBC_VERSION") and libc["sha256"] == ""
    assert start(folder, "--show", str(out)).stdout == done.stdout


def test_what_did_not_serve_is_a_failure(bundle, tmp_path, monkeypatch):
    folder, idle = bundle
    plan = scale_run.load(folder)
    ring = next(row for row in plan.rows if row.id == "ring")
    plan.arms[2].library = str(idle)
    assert "malloc came from libc.so" in scale_run.measure(folder, ring, 2, 100, plan.arms[2], 60)["failure"]
    plan.arms[2].library = "lib/missing.so"
    assert "cannot be preloaded" in scale_run.measure(folder, ring, 2, 100, plan.arms[2], 60)["failure"]
    assert "status 2" in scale_run.measure(folder, ring, 0, 100, plan.arms[0], 60)["failure"]
    plan.arms[2].library = plan.arms[0].library  # an arm that fails is left out, the others go on
    monkeypatch.setattr(scale_run, "measure", lambda folder, row, threads, amount, arm, timeout: {"failure": "it hung"}
                        if arm.name == "glibc" else {"ops": 1, "wall_ns": 1, "hwm_kib": 1, "check": "1"})
    session = scale_run.Session(plan, tmp_path, scale_run.Options(threads=[1, 2], rows=["ring"], repetitions=2))
    session.run()
    found = scale_show.Results(tmp_path)
    assert found.repetitions == 2 and found.failures["larson", 1, "glibc"] == "it hung"
    measured = [arm for _, _, arm in found.rates]
    assert measured.count("hakmem") == measured.count("hakmem~again") == 14 and "glibc" not in measured


def test_what_needs_too_much_memory_is_left_out(bundle, tmp_path, monkeypatch):
    plan = scale_run.load(bundle[0])
    monkeypatch.setattr(scale_run, "available_kib", lambda: 1500)
    monkeypatch.setattr(scale_run, "measure", lambda folder, row, threads, amount, arm, timeout: {
        "ops": 1, "wall_ns": 1, "hwm_kib": 500 * threads, "check": "1"})
    scale_run.Session(plan, tmp_path, scale_run.Options(threads=[1, 2, 4, 8], repetitions=1)).run()
    assert scale_show.Results(tmp_path).counts("larson") == [1, 2]


def test_bad_words(bundle):
    folder, _ = bundle
    for words in (["--threads", "x"], ["--rows", "nonsense"], ["--peers", "nonsense"],
                  ["--rows", "ring", "--threads", "1"]):
        done = start(folder, *words)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (words, done.stderr)
    with pytest.raises(LabError, match="no bundle"):
        scale_run.load(place.ROOT)


def test_the_command_writes_a_bundle_and_measures(tmp_path, monkeypatch, capsys):
    lab, archive, out = tmp_path / "lab", tmp_path / "bundle.tar.gz", tmp_path / "out"
    lab.mkdir()
    for name in ("store", "bench-build"):  # a place of its own: other tests may measure meanwhile
        (lab / name).symlink_to(place.LAB / name)
    monkeypatch.setattr(place, "LAB", lab)
    cli.scale([], "glibc", [], 8, "", 0, 0, 900, None, archive, None)
    assert 0 < archive.stat().st_size < scale_bundle.MOST_BYTES
    cli.scale(["ring"], "glibc", [], 99, "2", 1, 0.002, 900, out, None, None)
    shown = capsys.readouterr().out
    assert "ring: " in shown and "larson: " not in shown and (out / scale_show.PICTURE).exists()
