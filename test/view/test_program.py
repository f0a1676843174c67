# SPDX-License-Identifier: MIT
"""`map -- PROGRAM`: its status is passed on, its map is drawn. The launcher is a fake that leaves the sample."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_server import SAMPLES

from hakmem_view import own_program

TOOLS = Path(own_program.__file__).resolve().parent.parent
LAUNCHER = """#!/bin/sh
[ "$1" = run ] || exit 99
while [ "$1" != -- ]; do words="$words $1"; shift; done
shift
echo "$words" >"{folder}/words"
file=${{HAKMEM_OPTIONS##*report_file:}}
file=${{file%"%p"}}$$
printf '%s\\n' "$HAKMEM_OPTIONS" >"{folder}/options"
{before}
exec "$@"
"""


@pytest.fixture
def run(tmp_path):
    """run([...words], before=shell line) → what came of it; `report` is written under the program's PID. What still
    runs at the end of the test is killed, and its program with it."""
    children = []

    def start(*words, before: str = f'cat "{SAMPLES}/map.json" >"$file"', wait: bool = True, **environment):
        launcher = tmp_path / "hakmem"
        launcher.write_text(LAUNCHER.format(folder=tmp_path, before=before), encoding="utf-8")
        launcher.chmod(0o755)
        code = ("import sys; from hakmem_view import cli, own_program; "
                f"own_program.LAUNCHER = {str(launcher)!r}; sys.argv[0] = 'view'; cli.main()")
        child = subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": str(TOOLS), "COLUMNS": "80", **environment})
        children.append(child)
        if not wait:
            return child
        out, error = child.communicate(timeout=60)
        return subprocess.CompletedProcess(words, child.returncode, out, error)
    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def test_page_at_the_end_of_a_program(run, tmp_path):
    done = run("map", "--html", tmp_path / "map.html", "--", "sh", "-c", "echo its words; exit 7")
    assert (done.returncode, done.stdout) == (7, "its words\n")
    assert done.stderr == f"hakmem: page: {tmp_path / 'map.html'}\n"
    assert "sh (process 4711) at its end" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_text_at_the_end_of_a_program(run):
    done = run("map", "--", "echo", "its words")
    assert done.returncode == 0 and done.stdout.startswith("its words\necho (process 4711) at its end")


def test_options_of_the_user_stay(run, tmp_path):
    run("map", "--", "true", HAKMEM_OPTIONS="learn:0")
    said = (tmp_path / "options").read_text(encoding="utf-8").strip()
    assert said.startswith("learn:0,report:map,report_file:") and said.endswith("/%p")
    assert not Path(said.split("report_file:")[1]).parent.exists()
    run("map", "--", "true", HAKMEM_OPTIONS="")
    assert (tmp_path / "options").read_text(encoding="utf-8").startswith("report:map,")
    odd = tmp_path / "a,b:c"
    odd.mkdir()
    run("map", "--", "true", TMPDIR=str(odd), HAKMEM_OPTIONS="")
    assert (tmp_path / "options").read_text(encoding="utf-8").count(",") == 1


def test_library_and_profile_are_those_of_run(run, tmp_path):
    assert run("map", "--lib", "a b.so", "--profile=debug", "--", "true").returncode == 0
    assert (tmp_path / "words").read_text(encoding="utf-8") == " run --profile=debug --lib=a b.so\n"


@pytest.mark.parametrize("words, status", [(["sh", "-c", "exit 3"], 3), (["true"], 2),
                                           (["sh", "-c", "kill -9 $$"], 137)])
def test_program_that_leaves_no_map(run, words, status):
    done = run("map", "--", *words, before=":")
    assert (done.returncode, done.stdout) == (status, "")
    assert f"{words[0]} left no map" in done.stderr and done.stderr.count("\n") == 1


def test_signal_by_its_name(run):
    assert "sh left no map (ended by SIGKILL)" in run("map", "--", "sh", "-c", "kill -9 $$", before=":").stderr


def test_options_that_are_left_aside_are_named(run):
    said = run("map", "--", "true", HAKMEM_OPTIONS="report:exit,report_file:/tmp/x,learn:0").stderr
    assert said == "hakmem: report and report_file of HAKMEM_OPTIONS are left aside: the map is written\n"
    assert run("map", "--", "true", HAKMEM_OPTIONS="learn:0").stderr == ""


def test_maps_of_other_processes(run):
    three = f'for n in "$file" "$file"0 "$file"1; do cat "{SAMPLES}/map.json" >"$n"; done'
    done = run("map", "--", "true", before=three)
    assert done.returncode == 0 and "2 other processes left maps too" in done.stderr
    done = run("map", "--", "true", before=f'cat "{SAMPLES}/map.json" >"$file"0')
    assert done.returncode == 0 and "4711" in done.stdout


def test_map_that_is_cut(run):
    done = run("map", "--", "true", before=f'head -c 500 "{SAMPLES}/map.json" >"$file"')
    assert done.returncode == 2 and "the map of true is not JSON" in done.stderr and done.stderr.count("\n") == 1


def test_signals_are_passed_on(run):
    child = run("map", "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done", wait=False)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    _, error = child.communicate(timeout=60)
    assert child.returncode == 5, error


def test_signal_before_the_program_runs(run):
    """It came before the handlers were set, once, and ended the tool while the program went on."""
    child = run("map", "--", "sh", "-c", "echo ready; while :; do sleep 0.1; done", before="kill -TERM $PPID; sleep 0.3",
                wait=False)
    out, error = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM and "sh left no map (ended by SIGTERM)" in error, (out, error)


def test_interrupt_from_the_keyboard_ends_the_program_not_the_map(run):
    child = run("map", "--", "sh", "-c", "trap 'exit 6' INT; echo ready; while :; do sleep 0.1; done", wait=False)
    assert child.stdout.readline() == "ready\n"
    os.killpg(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 6 and "Classes" in out
