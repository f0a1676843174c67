# SPDX-License-Identifier: MIT
"""Without the Python environment: `ps`, `stats` and `explain` by the standard library alone, for every user."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import ROOT, command
from fake_observer import SAMPLES, document
from hakmem_view import plain as plain_text, plain_views
from hakmem_view.model import Stats

SYSTEM = "/usr/bin/python3"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def plain(*words, status: int = 0) -> subprocess.CompletedProcess:
    """Without any package: -S leaves out where they lie."""
    done = subprocess.run(command(*words, plain=True), capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == status, done
    return done


@pytest.mark.parametrize("verb", ["stats", "explain"])
def test_text_of_the_observer_is_printed_and_what_is_missing_said_in_one_line(program, verb):
    one = program("silent")
    done = plain(verb, one.pid)
    assert done.stdout == f"hakmem: /{verb}.txt\n"
    assert "the Python package typer" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["stats", "explain"])
def test_what_is_missing_is_not_said_before_an_error(program, verb):
    done = plain(verb, program("nothing").pid, status=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "does not run on hakmem" in done.stderr, done


def test_documents_are_passed_on_without_a_word(program):
    one = program()
    done = plain("explain", "--json", one.pid)
    assert json.loads(done.stdout) == document("/explain.json", one.pid, 0) and done.stderr == ""
    assert plain("stats", "--metrics", one.pid).stdout == (SAMPLES / "metrics.txt").read_text(encoding="utf-8")
    assert "has schema 2" in plain("stats", "--json", program("schema").pid, status=2).stderr


@pytest.mark.parametrize("words, said", [
    (["stats"], "stats: PID|CORE is wanted"), (["stats", "1", "2"], "stats: too many words: 2"),
    (["stats", "--foo", "1"], "stats: unknown option '--foo'; there are: --json, --metrics"),
    (["stats", "--json", "--metrics", "1"], "either --json or --metrics, not both"),
    (["explain", "--html", "page.html", "1"], "explain --html needs the Python packages rich, typer, jinja2; without them there are text "
                                              "and --json"),
    (["ps", "1"], "ps: too many words: 1"), (["stats", "--json", "0"], "there is no process 0"),
    (["top", "1"], "top needs a terminal; --once prints one frame"),
    (["map"], "map: either a PID, a core file, or a program behind -- is wanted"),
    (["frob"], "this needs the Python environment; without it there are: stats explain ps top map"),
    (["stats", "@hakmem-nobody"], "@hakmem-nobody is neither a PID nor a core file; `./hakmem ps` lists processes"),
    (["top", "--once", sys.executable], f"core file {os.path.abspath(sys.executable)} does not change: a running process is wanted"),
    (["profile"],
     "profile: a PID, a core file, a stored profile, or a program behind -- is wanted"),
    (["profile", "--frob", "1"], "profile: unrecognized arguments: --frob"),
    (["profile", "--rate", "0", "1"],
     "profile: argument --rate: '0' is no number of bytes (512k, 2m)"),
    (["profile", "--seconds", "nan", "1"],
     "profile: --seconds and --rows are numbers of 0 and more"),
    (["profile", "1", "2"], "profile: too many words: 2"),
    (["profile", "0"], "there is no process 0")])
def test_errors_are_one_line(words, said):
    done = plain(*words, status=2)
    assert (done.stdout, done.stderr) == ("", f"hakmem: {said}\n")


def test_text_keeps_within_the_width_and_loses_nothing():
    text = "hakmem: " + "some words of advice " * 20 + "\nhakmem: short\n"
    lines = plain_text.within(text, 80).splitlines()
    assert max(map(len, lines)) <= 80 and " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert lines[-1] == "hakmem: short" and lines[1].startswith("        ")


def test_causes_without_memory_are_left_out_of_text():
    assert plain_text.NOTHING.match(b"hakmem: uncarved: 0 B, 0 %: parts of slabs") and not plain_text.NOTHING.match(
        b"hakmem: guard: 4.00 KiB, <0.1 %: watched blocks")


def test_output_that_is_not_read_is_no_error(program):
    shell = f"{shlex.join(command('stats', '--json', program().pid, plain=True))} | true"
    assert subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False).stderr == ""


# --- the launcher, and the environment it looks for ---------------------------------------------------


@pytest.fixture
def checkout():
    """A checkout of root's, readable for everybody: its folder. Its environment is one that only says what it runs."""
    with tempfile.TemporaryDirectory(prefix="hakmem-view-") as folder:
        place = Path(folder)
        for name in ("tools/hakmem_lab", "build/lab/venv/bin", "build/release/observe", "include"):
            (place / name).mkdir(parents=True)
        shutil.copy("/bin/true", place / "build/release/observe/hakmem-observe")  # never started here
        for name in ("hakmem", "tools/lab_venv.sh", "tools/launch.sh", "tools/view.py", "tools/hakmem_lab/errors.py",
                     "tools/hakmem_lab/__init__.py"):
            shutil.copy(ROOT / name, place / name)
        shutil.copytree(ROOT / "tools" / "hakmem_view", place / "tools" / "hakmem_view",
                        ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("tools/hakmem_lab", "build/lab/venv"):
            (place / name / "requirements.txt").write_text("", encoding="utf-8")
        (place / "build/lab/venv/pyvenv.cfg").write_text("executable = /opt/own/python3\n", encoding="utf-8")
        python = place / "build/lab/venv/bin/python"
        python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        yield place


def hakmem(checkout: Path, *words, nobody: bool = True, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess:
    user = {"user": 65534, "group": 65534, "extra_groups": []} if nobody else {}
    return subprocess.run([checkout / "hakmem", *words], capture_output=True, text=True, check=False, **user,
                          env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


@AS_ROOT
def test_another_user_needs_not_write(checkout):
    done = hakmem(checkout, "stats", "1")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("view.py stats 1\n")
    assert not (checkout / "build/lab/.venv-lock").exists()
    (checkout / "build/lab/venv/requirements.txt").unlink()
    done = hakmem(checkout, "top", "1")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "its Python environment" in done.stderr and "cannot write there" in done.stderr


@AS_ROOT
def test_environment_that_only_its_owner_may_execute_sends_nobody_in_a_circle(checkout):
    (checkout / "build/lab/venv/bin/python").chmod(0o700)
    done = hakmem(checkout, "stats", "--json", "0")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "hakmem: there is no process 0\n")
    done = hakmem(checkout, "top", "1")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1, done
    assert "/opt/own/python3, which user nobody cannot execute; when its owner removes it" in done.stderr


@AS_ROOT
@pytest.mark.skipif(subprocess.run([SYSTEM, "-c", "import ensurepip, tomllib, venv"], check=False,
                                   capture_output=True).returncode != 0, reason=f"{SYSTEM} makes no environments")
def test_environment_of_root_is_made_from_a_python_that_all_may_execute(checkout):
    shutil.rmtree(checkout / "build/lab")
    private = checkout / "private"
    private.mkdir(mode=0o700)
    shutil.copy(SYSTEM, private / "python3")
    before = os.umask(0o077)
    try:
        done = subprocess.run([checkout / "tools/lab_venv.sh"], capture_output=True, text=True, check=False,
                              env={"PATH": f"{private}:/usr/bin:/bin", "PIP_NO_INDEX": "1"})
    finally:
        os.umask(before)
    assert done.returncode == 0 and "about a minute" in done.stderr, done
    assert f"executable = {os.path.realpath(SYSTEM)}" in (checkout / "build/lab/venv/pyvenv.cfg").read_text()
    assert hakmem(checkout, "top", "1").stderr != ""  # it starts: the packages are not there
    assert subprocess.run([done.stdout.strip(), "-c", ""], check=False, user=65534, group=65534,
                          extra_groups=[]).returncode == 0


@AS_ROOT
def test_text_of_a_command_needs_no_environment(checkout):
    shutil.rmtree(checkout / "build")
    for verb in ("stats", "map", "lab"):
        done = hakmem(checkout, verb, "--help")
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"  {verb} ")


def test_plain_top_says_what_the_learner_decided():
    stats = Stats.of(document("/stats.json", os.getpid(), 0))
    for limits, events, said in (
            ({}, {}, "the standard decides"),
            ({"keep_units_ms": 800, "keep_huge_ms": 12800}, {"learner_change": 2},
             "unused memory kept 0.8 s, freed huge blocks kept 13 s; 2 changes of keep times"),
            ({"keep_units_saves_bytes": 46137344, "keep_huge_ms": 0}, {"learner_resets": 1},
             "unused memory kept 0.8 s, saves 44.0 MiB/s; 2 changes of keep times; 1 failed forecast")):
        stats.limits.update(limits)
        stats.events.update(events)
        frame = plain_views._frame(os.getpid(), stats, stats, 1.0, 24)
        assert f"learner: {said}" in frame


def test_terminal_that_states_no_size_has_one(monkeypatch):
    monkeypatch.setattr(plain_views.shutil, "get_terminal_size", lambda fallback: os.terminal_size((0, 0)))
    assert plain_views._terminal() == (80, 24)


def test_top_and_map_are_plain_text(program):
    one = program()
    done = plain("top", "--once", "--interval", "0.1", one.pid)
    assert done.stderr == "" and "Events per second" in done.stdout and "thread name" in done.stdout
    done = plain("map", one.pid)
    assert done.stderr == "" and "a letter per 64 KiB" in done.stdout and "of slabs" in done.stdout
    assert "need the Python package jinja2" in plain("map", "--svg", "/nowhere/x.svg", one.pid, status=2).stderr
    assert "needs the Python package rich" in plain("map", "--html", "/nowhere/x.html", one.pid, status=2).stderr


def test_profile_as_plain_text_and_files(program, tmp_path):
    one = program()
    done = plain("profile", "--seconds", "0.1", one.pid)
    assert done.stderr == "" and f"process {one.pid} (program): " in done.stdout
    assert "program+0x1100  < program+" in done.stdout
    assert max(map(len, done.stdout.splitlines()[2:])) <= 80
    files = {name: tmp_path / name
             for name in ("json", "pprof", "heap-v2", "collapsed", "speedscope")}
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    assert plain("profile", "--seconds", "0", *words, one.pid).stdout == ""
    assert files["pprof"].read_bytes() == b"\x1f\x8bfake"
    assert json.loads(files["json"].read_text())["profile"] == 1
    assert "Functions by growth" in plain("profile", "--diff", files["json"], "--seconds", "0",
                                      one.pid).stdout
    assert "Growth is that of" in plain("profile", "--leaks", "--seconds", "0.1", one.pid).stdout
    assert plain("profile", "--alloc", files["json"]).stdout.count("    program") == 7


def test_plain_explain_says_who_holds_a_cause(program):
    lines = plain("explain", program("on").pid).stdout.replace("\u00a0", " ").splitlines()
    assert lines[0] == "hakmem: /explain.txt"
    assert lines[1].startswith("live is held by program+0x1100: ")
    assert "slab_free is held by program+0x1100: 9.00 MiB" in lines
