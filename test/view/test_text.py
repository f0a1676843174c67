# SPDX-License-Identifier: MIT
"""What the commands print, at two widths, and what they pass on as it is."""
import io
import json
import re
import shlex
import subprocess

import pytest
from conftest import command, sample
from fake_observer import SAMPLES, document
from rich.console import Console

from hakmem_view import explain_view, learner_view, stats_view, terminal
from hakmem_view.model import Explain, Stats

COMMANDS = (["stats"], ["explain"], ["map"], ["top", "--once", "--interval", "0.2"])
each_command = pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
widths = pytest.mark.parametrize("width", [80, 200])


def written(found: Explain) -> str:
    """On a terminal and on a page."""
    out = terminal.console()
    with out.capture() as text:
        explain_view.write(out, found, "it")
    return text.get() + explain_view.html(found, "it")


@widths
@each_command
def test_text_keeps_within_the_width(program, view, words, width):
    done = view(*words, program().pid, width=width)
    assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout  # no terminal
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width and len(lines) > 10


def test_bars_are_letters_where_no_colours_are_wanted(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": ""}.items():
        monkeypatch.setenv(name, value)
    for no_colour, has_colours in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_colour)
        terminal.console()
        assert terminal.Look.has_colours == has_colours


@each_command
def test_text_for_every_terminal(program, view, words):
    """Without colours there are letters; an encoding may know no bars."""
    one = program()
    plain, coloured = (view(*words, one.pid, **more).stdout for more in ({}, {"FORCE_COLOR": "1"}))
    assert "█ " not in plain.splitlines()[5] and "\x1b[" in coloured
    if words[0] in ("stats", "top"):
        assert "h held" in plain and "c cached" in plain and "h held" not in coloured
    done = view(*words, one.pid, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.isascii()


@pytest.mark.parametrize("mode", ["sparse", "evil"])
@each_command
def test_fields_may_be_missing_and_nothing_from_outside_moves_the_cursor(program, view, words,
                                                                         mode):
    done = view(*words, program(mode).pid)
    assert (done.returncode, done.stderr) == (0, "") and not set(done.stdout) & {"\x1b", "\x07"}


@widths
def test_stats_name_parts_classes_and_threads(program, view, width):
    text = view("stats", program().pid, width=width).stdout
    for word in ("small blocks the program holds", "unused parts of superslabs that hold memory", "4711",
                 "refill", "RSS ",
                 "= superslabs together", "= all together", "our own records", " slab_free ",
                 " uncarved "):
        assert word in text
    biggest = max(sample("stats")["classes"], key=lambda row: row["blocks"] * row["bytes"])
    assert f" {biggest['bytes']} B " in text


def test_mark_of_an_empty_cache_is_no_memory():
    """1 byte stands for none."""
    def text(dirty: int) -> str:
        out = Console(width=100, file=io.StringIO())
        out.print(stats_view.memory(Stats.of({"bytes": {"mapped": 1 << 22, "huge_cached": 1 << 20, "huge_cached_dirty": dirty}}), 100))
        return out.file.getvalue()
    assert "of these hold memory" not in text(1) and "of these hold memory" in text(1 << 16)


def test_threads_that_are_not_listed_are_told():
    found = Explain.of(sample("explain"))
    next(one for one in found.causes if one.name == "bins").bytes = sum(one.cached_bytes for one in found.threads) + 4096
    assert explain_view.others(found) == 4096
    found.threads.append(found.threads[0])
    assert explain_view.others(found) == 0


def test_help_of_top_names_what_it_takes(view):
    text = view("top", "--help").stdout
    assert "PID" in text and "CORE" not in text


@pytest.mark.parametrize("words", [["stats"], ["top", "--once", "--interval", "0.2"], ["map"]], ids=lambda words: words[0])
def test_words_of_the_source_are_not_printed_bare(program, view, words):
    """But the keys of the JSON in `stats`, which stand beside what they mean."""
    one = program()
    texts = [view(*words, one.pid, width=200).stdout]
    if words[0] != "stats":
        texts.append(subprocess.run(command(*words, one.pid, plain=True), capture_output=True, text=True, check=True).stdout)
    for text in texts:
        found = re.findall(r".*\b(?:owners?|uncarved|carved)\b.*", text)
        found = [line for line in found if not re.search(r" uncarved .* [0-9.]+ .iB", line) and "refill" not in line]
        assert not found and "unit" not in re.sub(r"units\sof\s64\sKiB|64\sKiB\sunits|unused\sunits", "", text), (found, text)


@widths
def test_explain_names_the_causes(program, view, width):
    text = " ".join(view("explain", program().pid, width=width).stdout.split())
    assert sample("explain")["text"][:30] in text
    for cause in sample("explain")["causes"]:
        assert (cause["title"][:36] in text) == (cause["bytes"] > 0), cause
    assert "73.1 MiB of RSS is free, and serves the program's next requests, 61.0 MiB of it those of the same" in text
    assert "The causes sum" not in text and sample("explain")["notes"][0] in text


@widths
def test_map_draws_a_letter_per_unit(program, view, width):
    heap = sample("map")
    text = view("map", program().pid, width=width).stdout
    for superslab in heap["superslabs"]:
        base = superslab["base"][2:]
        row = next(line for line in text.splitlines() if base in line)
        units = row.split(f"{base} ")[1][:64]
        for span in superslab["spans"]:
            letters = set(units[span["unit"]:span["unit"] + span["units"]])
            expected = {"large": {"▓"}, "dirty": {"░"}, "clean": {"·"}}.get(span["kind"])
            assert letters == expected if expected else letters <= set(" abcdefghABCDEFGH_"), (span, units)
    for size in {span["bytes"] for one in heap["superslabs"] for span in one["spans"] if "bytes" in span}:
        assert re.search(rf"^ *{size} B ", text, re.M)
    assert "48.0 MiB" in text and "kept" in text


def test_explain_advises_on_the_second_cause():
    causes = [{"name": "live", "bytes": 60, "title": "held", "advice": "free it"},
              {"name": "others", "bytes": 20, "title": "others", "advice": "nothing"},
              {"name": "bins", "bytes": 15, "title": "in caches", "advice": "lower cache"}]

    def advice(text: str, bins: int) -> str:
        causes[2]["bytes"] = bins
        return explain_view.next_words(Explain.of({"rss_bytes": 100, "first": "live", "text": text,
                                                   "causes": causes}))
    assert advice("Most is held.", 15) == "Next, in caches (15 %): lower cache."
    assert advice("Most is held. Of the rest: lower cache.", 15) == "" == advice("", 4)


def test_explain_says_what_the_learner_decided(program, view):
    short = view("explain", program().pid, width=200).stdout
    assert learner_view.TITLE not in short and "goes back to the system after 0.8 s (units of 64 KiB), 0.4 s (blocks above 1 MiB)." in short
    text = view("explain", "--learner", program().pid, width=200).stdout
    assert learner_view.TITLE in text and "For blocks above 1 MiB the last change cost more than it saved: the fixed time is in force" in text
    rows = [line.split() for line in text[text.index(learner_view.TITLE):].splitlines()]
    units = next(row for row in rows if row[:1] == ["units"])
    assert units[1:6] == ["0.8", "s", "in", "force", "for"]
    assert units[-6:] == ["35.6", "MiB", "65.4", "MiB", "101", "MiB"]
    assert ["0.8", "s", "cheapest", "0", "B", "1.00", "MiB", "1.00", "MiB"] in rows


def learned(learn: str, acts: bool = False) -> Explain:
    found = sample("explain")
    for one in found["learner"]:
        one.update(learn=learn, acts=acts)
    return Explain.of(found)


@pytest.mark.parametrize("learn, said, not_said", [
    ("counterfactual", learner_view.COUNTERFACTUAL, learner_view.NEAR_LIMIT),
    ("1", learner_view.NEAR_LIMIT, learner_view.COUNTERFACTUAL)])
def test_explain_says_what_the_learner_would_do(learn, said, not_said):
    found = learned(learn)
    first, second = learner_view.rows(found.learners[0])
    assert (first.role, second.role) == ("would be in force for 4.2 s, cheapest", "standard")
    text, acting = explain_view.html(found, "it"), explain_view.html(learned(learn, acts=True),
                                                                     "it")
    assert said in text and not_said not in text and said not in acting


def test_explain_is_silent_about_what_there_is_not():
    """Of older libraries, and without a learner."""
    old = sample("explain")
    del old["learner"]
    assert learner_view.TITLE not in written(Explain.of(old))
    assert learner_view.TITLE not in written(learned("0"))


@widths
def test_explain_names_who_holds_a_cause_where_a_profile_runs(program, view, width):
    lines = view("explain", program("on").pid, width=width).stdout.replace("\u00a0",
                                                                           " ").splitlines()
    at = next(at for at, line in enumerate(lines) if "blocks the program holds" in line)
    assert lines[at + 1].startswith("held by program+0x1100: 94.0 MiB ± 5 %")
    assert lines[at + 2].startswith("held by program+0x1400 (cache): ")
    assert "held by" not in view("explain", program("silent").pid, width=width).stdout


def test_long_names_of_who_holds_a_cause_hang_under_their_line():
    found = Explain.of(sample("explain"))
    out = Console(width=80, file=io.StringIO())
    explain_view.write(out, found, "it", {found.causes[0].name: ["a_function_with_a_name at a_file_of_its_own.cpp:1234: 5.06\u00a0MiB"] * 2})
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    at = next(at for at, line in enumerate(lines) if line.startswith("held by"))
    assert lines[at:at + 4] == ["held by a_function_with_a_name at", "    a_file_of_its_own.cpp:1234: 5.06\u00a0MiB"] * 2


@pytest.mark.parametrize("width", range(80, 140, 3))
def test_bars_of_stats_are_whole(width):
    out = Console(width=width, file=io.StringIO())
    stats_view.write(out, Stats.of(sample("stats")), "it", 1 << 30)
    assert "…" not in out.file.getvalue()


def test_documents_are_passed_on(program, view):
    one = program()
    for verb in ("stats", "explain"):
        found = json.loads(view(verb, "--json", one.pid).stdout)
        expected = document(f"/{verb}.json", one.pid, 0)
        assert found | {"events": 0} == expected | {"events": 0}
    assert view("stats", "--metrics",
                one.pid).stdout == (SAMPLES / "metrics.txt").read_text(encoding="utf-8")


def test_output_that_is_not_read_is_no_error(program):
    stats, map_ = (shlex.join(command(word, program().pid)) for word in ("stats", "map"))
    shell = f"{stats} 2>&1 >/dev/full | cat; {map_} | true"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
