# SPDX-License-Identifier: MIT
"""What the commands print, at two widths, and what they pass on as it is."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TOOL
from fake_server import SAMPLES, document

from hakmem_view import band_view, explain_view, learner_view, terminal
from hakmem_view.model import Explain

COMMANDS = (["stats"], ["explain"], ["map"], ["top", "--once", "--interval", "0.2"])


def sample(name: str) -> dict:
    return json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_text_keeps_within_the_width(program, view, words, width):
    done = view(*words, program().pid, width=width)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) > 10
    assert "\x1b" not in done.stdout  # no terminal


@pytest.mark.parametrize("width", [80, 200])
def test_stats_name_parts_classes_and_threads(program, view, width):
    text = view("stats", program().address, width=width).stdout
    for word in ("small blocks the program holds", "blocks in the bins of threads", "unused units that hold memory",
                 "huge blocks the program holds", "= superslabs together", "= all together", "our own records", "4711",
                 "refill list", "RSS ", "These are addresses; `./hakmem explain` says what is resident."):
        assert word in text
    biggest = max(sample("stats")["classes"], key=lambda row: row["blocks"] * row["bytes"])
    assert f" {biggest['bytes']} B " in text
    for key in ("slab_free", "uncarved", "huge_cached_dirty"):
        assert f" {key} " in text
    rows = text.splitlines()
    hole = next(at for at, row in enumerate(rows) if "returned to the kernel" in row)
    assert rows[hole - 1].startswith("= superslabs together")


@pytest.mark.parametrize("width", [80, 200])
def test_explain_names_the_causes(program, view, width):
    text = " ".join(view("explain", program().pid, width=width).stdout.split())
    assert sample("explain")["text"][:30] in text
    for cause in sample("explain")["causes"]:
        assert (cause["title"][:36] in text) == (cause["bytes"] > 0), cause
    assert "The causes sum" not in text and sample("explain")["notes"][0] in text


@pytest.mark.parametrize("width", [80, 200])
def test_map_draws_a_letter_per_unit(program, view, width):
    heap = sample("map")
    text = view("map", program().pid, width=width).stdout
    for superslab in heap["superslabs"]:
        row = next(line for line in text.splitlines() if superslab["base"][2:] in line)
        units = row.split(superslab["base"][2:] + " ")[1][:64]
        for span in superslab["spans"]:
            letters = set(units[span["unit"]:span["unit"] + span["units"]])
            expected = {"large": {"▓"}, "dirty": {"░"}, "clean": {"·"}}.get(span["kind"])
            assert letters == expected if expected else letters <= set(" abcdefghABCDEFGH_"), (span, units)
    for size in {span["bytes"] for one in heap["superslabs"] for span in one["spans"] if "bytes" in span}:
        assert re.search(rf"^ *{size} B ", text, re.M)
    assert "48.0 MiB" in text and "kept" in text


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_encoding_that_knows_no_bars(program, view, words):
    done = view(*words, program().pid, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.isascii()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_without_colours_there_are_letters(program, view, words):
    plain, coloured = (view(*words, program().pid, **more).stdout for more in ({}, {"FORCE_COLOR": "1"}))
    assert "█ " not in plain.splitlines()[5] and "\x1b[" in coloured
    if words[0] in ("stats", "top"):
        assert "h held" in plain and "c cached" in plain and "h held" not in coloured


def test_explain_advises_on_the_second_cause():
    causes = [{"name": "live", "bytes": 60, "title": "held", "advice": "free it"},
              {"name": "others", "bytes": 20, "title": "others", "advice": "nothing"},
              {"name": "bins", "bytes": 15, "title": "in caches", "advice": "lower cache"}]
    found = Explain.of({"rss_bytes": 100, "first": "live", "text": "Most is held.", "causes": causes})
    assert explain_view.next_words(found) == "Next, in caches (15 %): lower cache."
    found.text = "Most is held. Of the rest: lower cache."
    assert explain_view.next_words(found) == ""
    causes[2]["bytes"] = 4
    assert explain_view.next_words(Explain.of({"rss_bytes": 100, "first": "live", "causes": causes})) == ""


@pytest.mark.parametrize("width", [80, 200])
def test_explain_says_what_the_learner_decided(program, view, width):
    text = view("explain", program().pid, width=width).stdout
    assert learner_view.TITLE in text and "A forecast failed for huge blocks: the standard decides" in text
    rows = [line.split() for line in text[text.index(learner_view.TITLE):].splitlines()]
    units = next(row for row in rows if row[:1] == ["units"])
    assert units[1:6] == ["0.8", "s", "in", "force", "for"] and units[-6:] == ["35.6", "MiB", "65.4", "MiB", "101", "MiB"]
    assert ["0.4", "s", "standard", "100", "MiB", "43.9", "MiB", "144", "MiB"] in rows
    assert ["0.8", "s", "cheapest", "0", "B", "1.00", "MiB", "1.00", "MiB"] in rows
    assert "would be" not in text


def learned(learn: str, acts: bool = False) -> dict:
    found = sample("explain")
    for one in found["learner"]:
        one.update(learn=learn, acts=acts)
    return found


@pytest.mark.parametrize("learn, said, not_said", [
    ("counterfactual", learner_view.COUNTERFACTUAL, learner_view.NEAR_LIMIT),
    ("1", learner_view.NEAR_LIMIT, learner_view.COUNTERFACTUAL)])
def test_explain_says_what_the_learner_would_do(learn, said, not_said):
    found = Explain.of(learned(learn))
    first, second = learner_view.rows(found.learners[0])
    assert (first.role, second.role) == ("would be in force for 4.2 s, cheapest", "standard")
    text = explain_view.html(found, "it")
    assert said in text and not_said not in text
    text = explain_view.html(Explain.of(learned(learn, acts=True)), "it")
    assert said not in text and not_said not in text


def test_explain_is_silent_without_a_learner():
    old = sample("explain")
    del old["learner"]
    for document_of in (old, learned("0")):
        found = Explain.of(document_of)
        assert learner_view.shown(found) == [] and learner_view.TITLE not in explain_view.html(found, "it")
        out = terminal.console()
        with out.capture() as text:
            explain_view.write(out, found, "it")
        assert learner_view.TITLE not in text.get()


def test_explain_says_what_large_blocks_did():
    found = Explain.of(sample("explain"))
    small, large, slabs = band_view.rows(found)
    assert [row.name for row in (small, large, slabs)] == ["blocks of 64 to 256 KiB", "blocks of 1 to 4 MiB", "slabs of 64 KiB"]
    assert small.cells == ("1.00 MiB", "2.00 MiB", "20.0 MiB", "25 %", "3.00 MiB", "1.00 MiB", "50 %", "40 ms")
    assert large.cells[3:] == ("100 %", "0 B", "0 B", terminal.NONE, terminal.NONE)
    assert slabs.cells[3:6] == ("70 %", "4.00 MiB", "2.00 MiB")
    text = explain_view.html(found, "it")
    assert band_view.TITLE in text and "blocks of 1 to 4 MiB" in text and "Given back" in text


def test_stats_say_what_memory_did_by_size(program, view):
    done = view("stats", program().pid)
    assert band_view.TITLE in done.stdout and "slabs of 64 KiB" in done.stdout


def test_explain_is_silent_about_large_blocks_of_older_libraries_and_without_any():
    old, none = sample("explain"), sample("explain")
    del old["bands"]
    for one in none["bands"]:
        one["taken_bytes"] = 0
    for document_of in (old, none):
        found = Explain.of(document_of)
        out = terminal.console()
        with out.capture() as text:
            explain_view.write(out, found, "it")
        assert band_view.TITLE not in text.get() and band_view.TITLE not in explain_view.html(found, "it")


def test_keep_times_are_written_as_the_library_does():
    written = [terminal.keep_time(one["keep_ms"]) for one in sample("explain")["learner"][0]["strategies"]]
    assert written == ["0.1 s", "0.2 s", "0.4 s", "0.8 s", "1.2 s", "1.6 s", "2.4 s", "3.2 s", "6.4 s", "13 s", "26 s", "51 s"]


def test_numbers_of_things():
    assert terminal.count(1, "superslab") == "1 superslab" and terminal.count(2, "superslab") == "2 superslabs"
    assert terminal.count(0, "slab") == "0 slabs" and terminal.count(2, "other process") == "2 other processes"


@pytest.mark.parametrize("words, path", [(["stats", "--json"], "/stats.json"),
                                         (["explain", "--json"], "/explain.json")])
def test_json_is_passed_on(program, view, words, path):
    one = program()
    found, expected = json.loads(view(*words, one.pid).stdout), document(path, one.pid, 0)
    found.pop("events", None), expected.pop("events", None)
    assert found == expected


def test_metrics_are_passed_on(program, view):
    assert view("stats", "--metrics", program().pid).stdout == (SAMPLES / "metrics.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_fields_may_be_missing(program, view, words):
    done = view(*words, program("sparse").pid)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_nothing_from_outside_moves_the_cursor(program, view, words):
    done = view(*words, program("evil").pid)
    assert done.returncode == 0 and not set(done.stdout) & {"\x1b", "\x07"}


def test_socket_of_a_thread_with_descriptors_of_its_own(program, view):
    one = program("thread")
    opened = [os.readlink(f"/proc/{one.pid}/fd/{name}") for name in os.listdir(f"/proc/{one.pid}/fd")]
    assert not [name for name in opened if name.startswith("socket:")]
    done = view("stats", one.pid)
    assert (done.returncode, done.stderr) == (0, "")


def test_socket_file_with_a_long_path(program, view, tmp_path, monkeypatch):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.chdir(folder)
    one = program("ok", "socket")  # its own address is short: relative to its folder
    done = view("stats", folder / "socket")
    assert (done.returncode, done.stderr) == (0, "")
    by_pid = view("stats", one.pid, PWD=os.fspath(folder))
    assert (by_pid.returncode, by_pid.stderr) == (0, "")
    assert Path("socket").exists()


def test_output_that_is_not_read_is_no_error(program):
    one = program()
    tool = f"'{sys.executable}' '{TOOL}'"
    shell = f"{tool} stats {one.pid} 2>&1 >/dev/full | cat; {tool} map {one.pid} | true"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("width", [80, 200])
def test_explain_names_who_holds_a_cause_where_a_profile_runs(program, view, width):
    lines = view("explain", program("on").pid, width=width).stdout.replace("\u00a0", " ").splitlines()
    at = next(at for at, line in enumerate(lines) if "blocks the program holds" in line)
    assert lines[at + 1].startswith("held by program+0x1100: 94.0 MiB ± 5 %") and lines[at + 2].startswith("        program+0x1400 (cache): ")
    at = next(at for at, line in enumerate(lines) if "free blocks in partly used slabs" in line)
    assert lines[at + 1].split() == ["held", "by", "program+0x1100:", "9.00", "MiB"]
    assert "held by" not in view("explain", program("old").pid, width=width).stdout
