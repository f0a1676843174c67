# SPDX-License-Identifier: MIT
"""Runs of real programs: measures, checks, failures, servers. Small programs of our own stand for the real ones."""
import contextlib
import os
import sys
from pathlib import Path

import pytest
from hakmem_lab import apps
from hakmem_lab.apps import App, BadOutput, Launch, digest
from hakmem_lab.client import talk
from hakmem_lab.errors import LabError

# The rig's contract in few lines: what it measures is made up, what it starts and how that ended is not.
RIG = """#!{python}
import argparse, json, os, signal, subprocess, sys
p = argparse.ArgumentParser()
p.add_argument("--out"), p.add_argument("--preload", default=""), p.add_argument("--sample", type=float)
p.add_argument("--timeout", type=float), p.add_argument("argv", nargs="+")
o = p.parse_args()
env = dict(os.environ, MADE_PRELOAD=o.preload)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # the program may be asked, and stopped, before the next line is run
child = subprocess.Popen(o.argv, env=env, start_new_session=True,
                         preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
late = False
try:
    status = child.wait(o.timeout)
except subprocess.TimeoutExpired:
    child.kill()
    status, late = child.wait(), True
figures = dict(status=max(0, status), signal=max(0, -status), timeout=late, wall_ns=2_000_000, user_us=1000,
               sys_us=500, maxrss_kib=3000, minflt=70, majflt=0, nvcsw=0, nivcsw=0)
if o.sample:
    figures.update(peak_kib=4000, average_kib=2000, curve=[[0, 1000], [1, 4000]])
json.dump(figures, open(o.out, "w"))
"""

SERVER = """
import signal, socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    c, _ = s.accept()
    while data := c.recv(100):
        if data == b"die":
            signal.raise_signal(signal.SIGSEGV)
        c.sendall(data.upper() + b"!")
"""


class Shell(App):
    """A shell script in the place of a real program."""

    name, title, text, programs, packages = "shell", "", "", ("sh",), ("dash",)
    script, action = "", None

    def __init__(self, script="", **fields):
        self.script = script
        vars(self).update(fields)

    def run(self, stage):
        return digest(self.action(stage) if self.action else stage.run(["sh", "-c", self.script]).stdout)


@pytest.fixture(autouse=True)
def rig(tmp_path, monkeypatch):
    path = tmp_path / "measure"
    path.write_text(RIG.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setenv("HAKMEM_LAB_MEASURE", str(path))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(apps, "_scratch_place", lambda work: tmp_path / "scratch")


def run(app, tmp_path, launch=None, **options):
    return apps.run_app(app, launch or Launch(), tmp_path / "work", **options)


def raising(stage):
    raise BadOutput("three, not two")


def leftovers(tmp_path):
    return list((tmp_path / "scratch").iterdir())


# --- runs --------------------------------------------------------------------------------------

def test_measures_are_added_up(tmp_path):
    app = Shell(action=lambda stage: [stage.run(["true"]), stage.run(["true"])] and "x")
    outcome = run(app, tmp_path, sample_ms=1)
    assert (outcome.failure, outcome.wall_ns, outcome.cpu_ns, outcome.minflt) == ("", 4_000_000, 3_000_000, 140)
    assert (outcome.peak_kib, outcome.average_kib, outcome.value) == (4000, 2000, 4.0)
    assert outcome.curve == [(0, 1000), (1, 4000), (2, 1000), (3, 4000)] and outcome.check == digest("x")


def test_the_arm_reaches_only_the_program(tmp_path, monkeypatch):
    for name in ("LD_PRELOAD_X", "MIMALLOC_SHOW_STATS", "HAKMEM_OPTIONS"):
        monkeypatch.setenv(name, "mine")
    seen = {}

    def action(stage):
        seen["run"] = stage.run(["env"]).stdout.decode()
        seen["plain"] = stage.plain(["env"]).stdout.decode()
        return "x"

    launch = Launch([apps.find_program("nice")], "libarm.so", {"HAKMEM_OPTIONS": "learn:0"})
    assert run(Shell(action=action), tmp_path, launch).failure == ""
    assert "MADE_PRELOAD=libarm.so\n" in seen["run"] and "HAKMEM_OPTIONS=learn:0\n" in seen["run"]
    assert "mine" not in seen["run"] + seen["plain"] and "HAKMEM_OPTIONS" not in seen["plain"]


def test_the_c_librarys_arm_preloads_the_c_library():
    assert Launch().preloaded() == "libc.so.6"
    assert Launch(preload="x.so").preloaded() == "x.so"
    assert Launch(prefix=["ld.so", "--library-path", "d"]).preloaded() == "libc.so.6"
    assert Launch(prefix=["ld.so", "--preload", "x.so"]).preloaded() == ""


@pytest.mark.parametrize("script, failure", [
    ("exit 3", "exit 3"),
    ("kill -SEGV $$", "signal 11 (SIGSEGV)"),
    ("echo message >&2; kill -ABRT $$", "signal 6 (SIGABRT)"),
    ("sleep 60", "no end after 1 s"),
    ("echo \"ERROR: object 'x.so' from LD_PRELOAD cannot be preloaded\" >&2", "library cannot be preloaded"),
])
def test_failures_have_names(tmp_path, script, failure):
    outcome = run(Shell(script), tmp_path, timeout=1)
    assert outcome.failure == failure
    assert "message" not in script or outcome.detail == "message"
    assert leftovers(tmp_path) == []


def test_folders_of_killed_labs_go(tmp_path):
    for name in ("hakmem-lab-999999999-x", f"hakmem-lab-{os.getppid()}-x", "hakmem-lab-other"):
        (tmp_path / "scratch" / name).mkdir()
    run(Shell("true"), tmp_path)
    assert sorted(path.name for path in leftovers(tmp_path)) == [f"hakmem-lab-{os.getppid()}-x", "hakmem-lab-other"]


def test_a_missing_program_is_named(tmp_path):
    with pytest.raises(LabError, match="app/shell needs no-such-program .Debian: no-such-package."):
        run(Shell(programs=("sh", "no-such-program"), packages=("no-such-package",)), tmp_path)


@pytest.mark.parametrize("action, detail",
                         [(lambda stage: stage.plain(["false"]), ""), (raising, "three, not two")])
def test_wrong_output_is_a_failure(tmp_path, action, detail):
    outcome = run(Shell(action=action), tmp_path)
    assert outcome.failure == "output differs" and detail in outcome.detail


def test_without_the_rig_there_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HAKMEM_LAB_MEASURE", str(tmp_path / "nowhere"))
    with pytest.raises(LabError, match="cannot start .*nowhere"):
        run(Shell("true"), tmp_path)
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho measure: no such program >&2\nexit 125\n")
    broken.chmod(0o755)
    monkeypatch.setenv("HAKMEM_LAB_MEASURE", str(broken))
    with pytest.raises(LabError, match="could not run sh: measure: no such program"):
        run(Shell("true"), tmp_path)


# --- servers -----------------------------------------------------------------------------------

def serving(*conversations):
    """An action that has these conversations with the server above, and remembers its process."""
    def action(stage):
        port = stage.port()
        with stage.serve([sys.executable, "-c", SERVER, port], port) as server:
            action.pid = server.pid
            return talk(port, [list(each) for each in conversations], lambda reply: reply.endswith(b"!"), 10)[1]
    return action


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


def test_a_server_is_asked_and_stopped(tmp_path):
    action = serving([b"one", b"two"])
    outcome = run(Shell(action=action), tmp_path)
    same = run(Shell(action=serving([b"one", b"two"])), tmp_path)
    other = run(Shell(action=serving([b"one", b"six"])), tmp_path)
    assert outcome.failure == "" and outcome.cpu_ns == 1_500_000 and gone(action.pid)
    assert outcome.check == same.check != other.check


def test_a_dying_server_gives_its_reason(tmp_path):
    action = serving([b"one", b"die"])
    assert run(Shell(action=action), tmp_path).failure == "signal 11 (SIGSEGV)" and gone(action.pid)


def test_a_server_that_never_starts(tmp_path):
    outcome = run(Shell(action=lambda stage: stage.serve(["sh", "-c", "echo no port >&2; exit 4"], 1)), tmp_path)
    assert (outcome.failure, outcome.detail) == ("exit 4", "no port")


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_server_left_running_is_stopped(tmp_path, error):
    seen = {}

    def action(stage):
        port = stage.port()
        seen["pid"] = stage.serve([sys.executable, "-c", SERVER, port], port).pid
        if error:
            raise error
        return "x"

    with pytest.raises(error) if error else contextlib.nullcontext():
        run(Shell(action=action), tmp_path)
    assert gone(seen["pid"]) and leftovers(tmp_path) == []
