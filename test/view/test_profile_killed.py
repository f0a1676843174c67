# SPDX-License-Identifier: MIT
"""A program that a signal ends leaves the profile of that moment, which every form and command reads."""
import json
import os
import re
import signal
import subprocess
import sys

import leaky
import pytest
from test_profile_formats import parsed
from test_real import LIBRARY, OBSERVED, _knows

from hakmem_view import last_look, observer, process, profile_pprof

pytestmark = [pytest.mark.skipif(not _knows("profile_rate"), reason="no library that knows the option profile_rate"),
              leaky.COMPILER, OBSERVED]
ENDS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV]
PYTHON = """import os
def hoard(number):
    return bytearray(5000 + number)
kept = [hoard(number) for number in range(4000)]
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return leaky.compiled(tmp_path_factory.mktemp("killed"), "-g", "-O2")


@pytest.mark.parametrize("end", ENDS)
def test_program_names_its_leak_however_it_ends(view, program, end, tmp_path):
    done = view("profile", "--lib", LIBRARY, "--rate", "64k", "--", program, 32, int(end), timeout=300)
    assert done.returncode == 128 + end, done
    assert f"leaky was ended by {end.name}: this is its profile at that moment" in done.stderr
    lines = done.stdout.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Functions")) + 2
    assert f"leak_record at leaky.c:{leaky.line_of('the line of the leak')}  < main" in lines[first + 1], done.stdout
    assert 24 < float(re.match(r" *([\d.]+) MiB", lines[first])[1]) < 48, done.stdout


@pytest.fixture(scope="module")
def left(program, tmp_path_factory):
    """The file that it left, killed."""
    path = tmp_path_factory.mktemp("left") / "profile"
    environment = {"LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": f"report:profile,report_file:{path},profile_rate:64k"}
    assert subprocess.run([program, "32", "9"], env=environment, check=False).returncode == -signal.SIGKILL
    return path


@pytest.mark.parametrize("words", [[], ["--leaks"], ["--alloc"], ["--peak"], ["--per-thread"], ["--lifetimes"]])
def test_file_that_is_left_is_looked_at_like_a_process(view, left, words):
    done = view("profile", *words, left)
    assert (done.returncode, done.stderr) == (0, "") and "leak_record at leaky.c:" in done.stdout, done
    assert "The library counts" not in done.stdout  # nothing but the samples is left


def test_pinned_memory_of_a_file_that_is_left_is_not_none_but_unknown(view, left, tmp_path):
    assert "not known of a program that was killed" in view("profile", "--pinned", left).stdout
    assert "Pinned" not in view("profile", left).stdout
    assert view("profile", "--html", tmp_path / "page.html", left).returncode == 0
    cells = re.findall(r'data-name="Pinned" data-v="[^"]*"[^>]*>([^<]*)', (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert cells and set(cells) == {"–"}, cells


def test_pinned_memory_of_a_killed_program_is_what_the_last_look_saw(view, program, tmp_path, monkeypatch):
    """It stops itself when it has pinned, is looked at, and is killed."""
    first = last_look.look

    def look(path):
        is_stopped = process.state(int(path.name)) == "T"
        found = first(path)
        if is_stopped and found is not None:
            os.kill(int(path.name), signal.SIGKILL)
        return found
    monkeypatch.setattr(last_look, "look", look)
    stored = tmp_path / "profile.json"
    done = view("profile", "--lib", LIBRARY, "--rate", "4k", "--json", stored, "--", program, 32, int(signal.SIGSTOP), timeout=300)
    assert done.returncode == 128 + signal.SIGKILL, done
    document = json.loads(stored.read_text(encoding="utf-8"))
    assert document["exact"]["live_bytes"] is None and document["pinned_age_ns"] >= 0
    assert max(one["pinned_bytes"] for one in document["sites"]) > 8 << 20
    done = view("profile", "--pinned", stored)
    assert "Pinned is what was seen " in done.stdout and " before its end." in done.stdout
    lines = done.stdout.splitlines()
    row = next(at for at, line in enumerate(lines) if line.startswith("Functions")) + 3
    assert f"pin_slab at leaky.c:{leaky.line_of('the line of the pinned blocks')}" in lines[row], done.stdout
    assert "Pinned" in view("profile", stored).stdout


def test_only_processes_that_keep_their_profile_here_are_looked_at(left, tmp_path):
    """A PID of another PID namespace is somebody else's here."""
    path = tmp_path / str(os.getpid())
    assert last_look.look(path) is None
    path.write_bytes(left.read_bytes())
    assert last_look.look(path) is None
    looks = last_look.Looks(tmp_path, {path.name: last_look.Look(1.0, {})}, 3.5)
    body = observer.Observed(str(left)).read("profile", "--format", "json")
    found = json.loads(looks.complete(path.name, body))
    assert found["pinned_age_ns"] == 2_500_000_000 and {one["pinned_bytes"] for one in found["sites"]} == {0}
    assert looks.complete("1", body) == body


@pytest.mark.parametrize("verb", ["explain", "stats", "map"])
def test_file_that_is_left_has_samples_alone(refuses, left, verb):
    assert f"has samples alone: `./hakmem profile {left}` shows them" in refuses(verb, left)


def test_file_that_is_left_becomes_others(view, left, tmp_path):
    files = {name: tmp_path / name for name in ("json", "pprof", "heap-v2", "collapsed", "speedscope", "html")}
    assert view("profile", *(word for name, path in files.items() for word in (f"--{name}", path)), left).returncode == 0
    found = json.loads(files["json"].read_text(encoding="utf-8"))
    assert found["is_whole"] and found["exact"]["live_bytes"] is None and found["program"] == "leaky"
    assert any(one["path"].endswith("/leaky") and one["build_id"] for one in found["mappings"])
    assert all("leak_record" in path.read_text(encoding="utf-8") for name, path in files.items()
               if name in ("collapsed", "speedscope", "html"))


def test_observer_writes_pprof_of_it(left):
    one = parsed(subprocess.run([observer.PROGRAM, "profile", left, "--format", "pprof"], capture_output=True, check=True).stdout)
    assert 24 << 20 < sum(sample.value[3] for sample in one.sample) < 48 << 20
    assert any(one.string_table[mapping.filename].endswith("/leaky") and mapping.build_id for mapping in one.mapping)
    assert one.string_table[one.drop_frames] == profile_pprof.DROP_FRAMES


def test_python_program_that_is_killed_names_its_function(view, tmp_path):
    (tmp_path / "shop.py").write_text(PYTHON, encoding="utf-8")
    done = view("profile", "--lib", LIBRARY, "--rate", "16k", "--", sys.executable, tmp_path / "shop.py", timeout=300)
    assert done.returncode == 128 + signal.SIGKILL and "hoard at shop.py:2" in done.stdout, done
    assert not [name for name in os.listdir("/tmp") if re.fullmatch(r"perf-\d+\.map", name) and name in done.stderr]
