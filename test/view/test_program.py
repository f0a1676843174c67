# SPDX-License-Identifier: MIT
"""`map -- PROGRAM` and `profile -- PROGRAM`: its status is passed on, what it left is shown. The
launcher is a fake that leaves it."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic
from conftest import OBSERVER
from fake_observer import SAMPLES

from hakmem_view import last_look, own_program

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
WAITS = "echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def run(tmp_path):
    """run([...words], before=shell line) → what came of it; `report` is written under the program's
    PID. What still runs at the end of the test is killed, and its program with it."""
    children = []
    profile = tmp_path / "left.json"
    profile.write_text(json.dumps(synthetic.document(synthetic.standard())), encoding="utf-8")
    left = {"map": SAMPLES / "map.json", "profile": profile}

    def start(*words, before: str = "", wait: bool = True, plain: bool = False, **environment):
        launcher = tmp_path / "hakmem"
        before = before or f'cat "{left[words[0]]}" >"$file"'
        launcher.write_text(LAUNCHER.format(folder=tmp_path, before=before), encoding="utf-8")
        launcher.chmod(0o755)
        main = "plain.main(missing='')" if plain else "cli.main()"
        code = (f"import sys; from hakmem_view import {main.partition('.')[0]}, observer, own_program; observer.PROGRAM = {str(OBSERVER)!r}; "
                f"own_program.LAUNCHER = {str(launcher)!r}; sys.argv[0] = 'view'; {main}")
        child = subprocess.Popen([sys.executable, *["-S"] * plain, "-c", code, *map(str, words)],
                                 text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": str(TOOLS), "COLUMNS": "80", **environment})
        children.append(child)
        if not wait:
            return child
        out, error = child.communicate()
        return subprocess.CompletedProcess(words, child.returncode, out, error)
    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


@pytest.fixture
def options(tmp_path):
    """options() → those that the launcher got."""
    return lambda: (tmp_path / "options").read_text(encoding="utf-8").strip()


def test_map_at_the_end_of_a_program(run, tmp_path):
    done = run("map", "--html", tmp_path / "map.html", "--", "sh", "-c", "echo its words; exit 7")
    assert (done.returncode, done.stdout) == (7, "its words\n")
    assert done.stderr == f"hakmem: page: {tmp_path / 'map.html'}\n"
    assert "sh (process 4711) at its end" in (tmp_path / "map.html").read_text(encoding="utf-8")
    done = run("map", "--", "echo", "its words")
    assert done.returncode == 0 and done.stdout.startswith("its words\necho (process 4711) at its end")


def test_profile_at_the_end_of_a_program(run, options, tmp_path):
    done = run("profile", "--", "sh", "-c", "echo its words; exit 7")
    assert done.returncode == 7 and done.stderr == "" and "program+0x1100" in done.stdout
    assert done.stdout.startswith("its words\nsh (process 4711) at its end: 100 MiB")
    assert options().startswith("profile_rate:524288,report:profile,report_file:")
    page, stored = tmp_path / "p.html", tmp_path / "p.json"
    done = run("profile", "--html", page, "--json", stored, "--", "true")
    assert (done.returncode, done.stdout) == (0, "")
    assert "true (process 4711) at its end" in page.read_text(encoding="utf-8")
    done = run("profile", "--diff", stored, "--", "true")
    assert done.returncode == 0 and "Growth is that of 0 ms" in done.stdout
    done = run("profile", "--peak", "--", "sh", "-c", "exit 5", plain=True, HAKMEM_OPTIONS="")
    assert done.returncode == 5 and "sh (process 4711) at its end" in done.stdout
    assert "At peak" in done.stdout


def test_options_of_the_user_stay(run, options, tmp_path):
    run("map", "--", "true", HAKMEM_OPTIONS="learn:0")
    assert options().startswith("learn:0,report:map,report_file:") and options().endswith("/%p")
    assert not Path(options().split("report_file:")[1]).parent.exists()
    odd = tmp_path / "a,b:c"
    odd.mkdir()
    run("map", "--", "true", TMPDIR=str(odd), HAKMEM_OPTIONS="")
    assert options().startswith("report:map,") and options().count(",") == 1
    run("profile", "--rate", "64k", "--", "true", HAKMEM_OPTIONS="learn:0,profile_rate:9")
    assert options().startswith("learn:0,profile_rate:9,profile_rate:65536,report:profile")
    run("profile", "--", "true", HAKMEM_OPTIONS="learn:0,profile_rate:9")
    assert options().startswith("learn:0,profile_rate:9,report:profile")


@pytest.mark.parametrize("command", ["map", "profile"])
def test_library_and_profile_are_those_of_run(run, tmp_path, command):
    assert run(command, "--lib", "a b.so", "--profile=debug", "--", "true").returncode == 0
    assert (tmp_path / "words").read_text(encoding="utf-8") == " run --profile=debug --lib=a b.so\n"


@pytest.mark.parametrize("command", ["map", "profile"])
@pytest.mark.parametrize("words, status, why", [(["sh", "-c", "exit 3"], 3, ""), (["true"], 2, ""),
                                                (["sh", "-c", "kill -9 $$"], 137,
                                                 " (ended by SIGKILL)")])
def test_program_that_leaves_nothing(run, command, words, status, why):
    done = run(command, "--", *words, before=":")
    assert (done.returncode, done.stdout) == (status, "") and done.stderr.count("\n") == 1
    assert f"{words[0]} left no {command}{why}" in done.stderr


def test_options_that_are_left_aside_are_named(run):
    said = run("map", "--", "true", HAKMEM_OPTIONS="report:exit,report_file:/tmp/x,learn:0").stderr
    assert said == "hakmem: report and report_file of HAKMEM_OPTIONS are left aside: the map is written\n"
    said = run("profile", "--", "true", HAKMEM_OPTIONS="report:exit,learn:0").stderr
    assert said == "hakmem: report of HAKMEM_OPTIONS is left aside: the profile is written\n"
    assert run("map", "--", "true", HAKMEM_OPTIONS="learn:0").stderr == ""


def test_maps_of_other_processes_and_one_that_is_cut(run):
    three = f'for n in "$file" "$file"0 "$file"1; do cat "{SAMPLES}/map.json" >"$n"; done'
    done = run("map", "--", "true", before=three)
    assert done.returncode == 0 and "2 other processes left maps too" in done.stderr
    done = run("map", "--", "true", before=f'cat "{SAMPLES}/map.json" >"$file"0')
    assert done.returncode == 0 and "4711" in done.stdout
    done = run("map", "--", "true", before=f'head -c 500 "{SAMPLES}/map.json" >"$file"')
    assert done.returncode == 2 and "the map of true is not JSON" in done.stderr
    assert done.stderr.count("\n") == 1


def test_signals_are_passed_on(run):
    child = run("map", "--", "sh", "-c", f"trap 'exit 5' TERM; {WAITS}", wait=False)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    _, error = child.communicate()
    assert child.returncode == 5, error


def test_signals_that_are_ignored_stay_so(run):
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = run("map", "--", "sh", "-c", "kill -HUP $$; echo lives")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done.returncode == 0 and done.stdout.startswith("lives\n")


def test_signal_before_the_program_runs(run):
    """It came before the handlers were set, once, and ended the tool while the program went on."""
    child = run("map", "--", "sh", "-c", WAITS, before="kill -TERM $PPID; sleep 0.3", wait=False)
    out, error = child.communicate()
    assert child.returncode == 128 + signal.SIGTERM, (out, error)
    assert "sh left no map (ended by SIGTERM)" in error, (out, error)


def test_interrupt_from_the_keyboard_ends_the_program_not_the_map(run):
    child = run("map", "--", "sh", "-c", f"trap 'exit 6' INT; {WAITS}", wait=False)
    assert child.stdout.readline() == "ready\n"
    os.killpg(child.pid, signal.SIGINT)
    out, _ = child.communicate()
    assert child.returncode == 6 and "Classes" in out


def test_peak_is_shown_where_little_is_left(run, tmp_path):
    left = synthetic.document(synthetic.Load([synthetic.Truth([0x1100], 4096, 1000, peak=20_000)]))
    (tmp_path / "little.json").write_text(json.dumps(left), encoding="utf-8")
    done = run("profile", "--", "true", before=f'cat "{tmp_path}/little.json" >"$file"')
    assert "At peak" in done.stdout and "was in use at its peak: this is the peak" in done.stderr
    done = run("profile", "--alloc", "--", "true", before=f'cat "{tmp_path}/little.json" >"$file"')
    assert "At peak" not in done.stdout and done.stderr == ""


@pytest.mark.parametrize("own, other, chosen", [(2, 300, 2), (2, 3, 1), (300, 2, 1), (None, 2, 2)])
def test_report_is_that_of_the_program_and_not_of_its_shell(tmp_path, own, other, chosen):
    """By the size that each states, in whatever form."""
    texts = (lambda mib: f"hakmem: RSS is {mib} MiB, 9.9 MiB at its peak", lambda mib: f'{{"rss_bytes":{mib << 20}}}',
             lambda mib: f'{{"exact":{{"live_bytes":{mib << 20},"live_objects":null}}}}', lambda mib: f'{{"mapped":{mib << 20},"live":0}}',
             lambda mib: f"hakmem: mapped_bytes       {mib << 20}  address space")
    for text in texts:
        for name, mib in (("1", own), ("2", other)):
            if mib is not None:
                (tmp_path / name).write_text(text(mib), encoding="utf-8")
        left, others, _ = own_program._found(last_look.Looks(tmp_path), 1, 0.0, False)  # pylint: disable=protected-access
        assert left == (tmp_path / str(chosen)).read_bytes() and others == (own is not None)
