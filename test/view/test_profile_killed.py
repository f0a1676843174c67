# SPDX-License-Identifier: MIT
"""A program that a signal ends leaves the profile of that moment, which every form and command reads."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import jsonschema
import leaky
import pytest
from conftest import ROOT
from test_profile_formats import parsed
from test_real import LIBRARY, OBSERVED, _knows

from hakmem_view import last_look, observer, process, profile_pprof
from hakmem_view.errors import Refused, ViewError

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


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """Programs that stop themselves are killed once they were looked at, and at the end of the test in any case. Looks may take long."""
    monkeypatch.setattr(last_look, "SHARE", 1)
    monkeypatch.setattr(last_look, "LONGEST", 120.0)
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")  # the kernel tells its own name in maps
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    first, noted = last_look.look, tmp_path / "noted"

    def look(path):
        noted.write_text(path.name, encoding="ascii")
        is_stopped = process.state(int(path.name)) == "T"
        found = first(path)
        if is_stopped and found is not None:
            os.kill(int(path.name), signal.SIGKILL)
        return found
    monkeypatch.setattr(last_look, "look", look)
    yield
    if noted.exists() and process.name(int(noted.read_text(encoding="ascii"))) == "leaky":
        os.kill(int(noted.read_text(encoding="ascii")), signal.SIGKILL)


@pytest.mark.usefixtures("stopped")
def test_pinned_memory_of_a_killed_program_is_what_the_last_look_saw(view, program, tmp_path):
    """It stops itself when it has pinned, is looked at, and is killed."""
    stored = tmp_path / "profile.json"
    done = view("profile", "--lib", LIBRARY, "--rate", "4k", "--json", stored, "--", program, 32, int(signal.SIGSTOP), timeout=300)
    assert done.returncode == 128 + signal.SIGKILL, done
    document = json.loads(stored.read_text(encoding="utf-8"))
    assert document["exact"]["live_bytes"] is None and document["pinned_age_ns"] > 0
    assert max(one["pinned_bytes"] for one in document["sites"]) > 8 << 20
    jsonschema.validate(document, json.loads((ROOT / "docs" / "schema" / "profile.schema.json").read_text(encoding="utf-8")))
    done = view("profile", "--pinned", stored)
    assert re.search(r"was last looked at \d.* before its end\.", " ".join(done.stdout.split()))
    lines = done.stdout.splitlines()
    row = next(at for at, line in enumerate(lines) if line.startswith("Functions")) + 3
    assert f"pin_slab at leaky.c:{leaky.line_of('the line of the pinned blocks')}" in lines[row], done.stdout
    assert "Pinned" in view("profile", stored).stdout


@pytest.fixture
def living(program, tmp_path, monkeypatch):
    """The file of a process that lives and keeps its profile in it."""
    monkeypatch.setattr(last_look, "LONGEST", 120.0)
    environment = {"LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": f"report:profile,report_file:{tmp_path}/%p,profile_rate:64k"}
    with subprocess.Popen([program, "32", "0"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout.readline() == b"ready\n"
        yield tmp_path / str(one.pid)
        one.kill()


def test_only_a_process_that_keeps_its_profile_here_is_looked_at(living, tmp_path):
    """A PID of another PID namespace is somebody else's here."""
    found = last_look.look(living)
    assert found is not None and found.head == observer.kept_head(living) and found.pinned
    elsewhere = tmp_path / "elsewhere" / living.name
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(living.read_bytes())
    assert last_look.look(elsewhere) is None
    living.with_name("x").write_bytes(living.read_bytes())
    assert last_look.look(living.with_name("x")) is None


def test_process_that_ends_while_it_is_looked_at_is_not_seen(living, monkeypatch):
    """Its memory is gone by then, its entry in /proc is not."""
    first = observer.Observed.read

    def read(self, *words, **options):
        body = first(self, *words, **options)
        os.kill(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        return body
    monkeypatch.setattr(observer.Observed, "read", read)
    assert last_look.look(living) is None


def test_what_was_seen_is_of_the_same_program(left):
    """The PID may have been another's, or that program may have executed this one."""
    body = observer.Observed(str(left)).read("profile", "--format", "json")
    looks = last_look.Looks(left.parent, {left.name: last_look.Look(observer.kept_head(left), 1.0, {}, 3.5)})
    found = json.loads(looks.complete(left.name, body))
    assert found["pinned_age_ns"] == 2_500_000_000 and {one["pinned_bytes"] for one in found["sites"]} == {0}
    looks.last[left.name].head = b"another"
    assert looks.complete(left.name, body) == body


def test_what_was_seen_goes_with_the_file_it_is_of(tmp_path, living, monkeypatch):
    looks = last_look.Looks(living.parent)
    looks.round()
    assert set(looks.last) == {living.name} and not looks.last[living.name].ended
    monkeypatch.setattr(last_look, "look", lambda _: None)
    looks.round()
    assert not looks.last[living.name].ended
    os.kill(int(living.name), signal.SIGKILL)
    os.waitid(os.P_PID, int(living.name), os.WEXITED | os.WNOWAIT)
    looks.round()
    assert looks.last[living.name].ended
    (tmp_path / "report").write_text("{}", encoding="ascii")
    os.replace(tmp_path / "report", living)
    looks.round()
    assert not looks.last


@pytest.mark.parametrize("error, times", [(Refused("may not be read"), 1), (ViewError("no more processes"), 2), (KeyError("sites"), 2)])
def test_process_that_may_not_be_read_is_tried_once(tmp_path, monkeypatch, left, error, times):
    """Unless another program has its PID."""
    tried = []

    def look(path):
        tried.append(path)
        raise error
    monkeypatch.setattr(last_look, "look", look)
    (tmp_path / "1").write_bytes(left.read_bytes())
    looks = last_look.Looks(tmp_path)
    looks.round()
    looks.round()
    assert len(tried) == times
    (tmp_path / "1").write_bytes(observer.KEPT + b"another")
    looks.round()
    assert len(tried) == times + 1


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
