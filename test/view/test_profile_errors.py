# SPDX-License-Identifier: MIT
"""`profile`: whatever is asked for and whoever answers, one line on standard error and status 2."""
import json
import os
import subprocess
import sys

import jsonschema
import pytest
import synthetic
from conftest import TOOL
from fake_server import ODD_PROFILES

from hakmem_view import process, source

SCHEMA = TOOL.parent.parent / "docs" / "schema" / "profile.schema.json"


@pytest.mark.parametrize("words, said", [
    ([], "a PID, a socket's path, a stored profile, or a program behind -- is wanted"),
    (["0"], "there is no process 0"), (["99999999999"], "there is no process 99999999999"),
    (["--rate", "much", "1"], "profile: --rate: 'much' is no number of bytes (512k, 2m)"),
    (["--rate", "0", "1"], "'0' is no number of bytes"), (["--rate", "99999g", "1"], "is no number of bytes"),
    (["--seconds", "-1", "1"], "profile: --seconds should be"), (["--seconds", "nan", "1"], "--seconds should be"),
    (["--leaks", "--peak", "1"], "either --peak or --leaks, not both"),
    (["--diff", "x", "--alloc", "1"], "either --alloc or --diff, not both"), (["--diff", "/gone", "@x"], "cannot read /gone"),
    (["--frob"], "profile: unknown option '--frob'; there are: --rate, --seconds"), (["1", "2"], "too many words: 2"),
    (["--lib", "x", "1"], "--profile and --lib go with a program behind --"), (["1", "--", "true"], "either a process (1) or a program"),
    (["--", "/gone/program"], "there is no program '/gone/program'"), (["@hakmem-nobody"], "nobody listens at @hakmem-nobody")])
def test_words(refuses, words, said):
    assert said in refuses("profile", *words)


def test_process_that_is_none_or_has_ended(refuses):
    done = subprocess.Popen(["true"])
    done.wait()
    assert f"there is no process {done.pid}" in refuses("profile", done.pid)


def test_process_that_does_not_run_on_hakmem(program, refuses):
    said = refuses("profile", program("nothing").pid)
    assert "does not run on hakmem" in said and "./hakmem run -- PROGRAM" in said


def test_process_on_a_hakmem_that_cannot_be_attached_to(program, refuses, monkeypatch):
    monkeypatch.setattr(process, "LIBRARY", "libc")  # as if it were ours
    from hakmem_view import attach
    from hakmem_view.errors import ViewError
    with pytest.raises(ViewError, match="runs on a hakmem that is too old to attach to; start it with HAKMEM_OPTIONS=control:@hakmem-%p"):
        attach.wake(program("nothing").pid)


@pytest.mark.parametrize("mode, words", [
    ("foreign", "is not a control socket of hakmem"), ("garbage", "is not a control socket of hakmem"),
    ("early", "closed the connection without an answer"), ("short", "closed the connection after"),
    ("cut-json", "is not JSON"), ("busy", "refuses /profile: 503"),
    ("old", f"does not serve /profile: hakmem 0.1.0, this tool is hakmem {source.own_version()}"),
    ("no-post", "refuses /profile?rate=524288: 405"), ("newer", "speaks version 2 of the control channel")])
def test_answers_that_are_none(program, refuses, mode, words):
    assert words in refuses("profile", "--seconds", "0", program(mode).address)


def test_process_that_only_inherited_a_socket(program, refuses):
    assert "only inherited a socket, which process" in refuses("profile", "--seconds", "0", program("inherited").pid)


@pytest.mark.parametrize("number", range(len(ODD_PROFILES)))
def test_documents_of_the_wrong_form(program, refuses, number):
    said = refuses("profile", "--seconds", "0", program(f"profile{number}").address)
    assert "/profile of @hakmem-test-" in said and ("is malformed: " in said or "is a profile of version" in said)


@pytest.mark.parametrize("text, said", [("", "is not JSON"), ("[]", "is no profile of hakmem"), ("{}", "is no profile of hakmem"),
                                        ("[" * 100_000, "is not JSON"), ("1" * 9000, "is not JSON"), ("\xff\x00", "is not JSON")])
def test_stored_profiles_that_are_none(refuses, tmp_path, text, said):
    (tmp_path / "p.json").write_text(text, encoding="latin-1")
    assert said in refuses("profile", tmp_path / "p.json")
    assert said in refuses("profile", "--diff", tmp_path / "p.json", "@hakmem-nobody")


def test_stored_profile_may_lack_almost_everything(view, tmp_path):
    (tmp_path / "p.json").write_text('{"profile": 1, "sites": [{"stack": []}, {"stack": ["0x0", "0xffffffffffffffff"], '
                                     '"inuse": {"bytes": 5}}]}', encoding="utf-8")
    for words in ([], ["--peak"], ["--per-thread"], ["--lifetimes"], ["--pprof", tmp_path / "a"], ["--otlp", tmp_path / "f"], ["--html", tmp_path / "b"],
                  ["--heap-v2", tmp_path / "c"], ["--collapsed", tmp_path / "d"], ["--speedscope", tmp_path / "e"]):
        done = view("profile", *words, tmp_path / "p.json")
        assert done.returncode == 0, (words, done)


def test_files_that_cannot_be_written(program, refuses, tmp_path):
    one = program("on")
    for name in ("html", "json", "pprof", "otlp", "heap-v2", "collapsed", "speedscope"):
        assert "cannot write" in refuses("profile", "--seconds", "0", f"--{name}", tmp_path / "gone" / "file", one.pid)


@pytest.mark.parametrize("module, option", [("profile_pprof", "--pprof"), ("profile_otlp", "--otlp"),
                                            ("profile_page", "--html")])
def test_packages_that_are_missing_are_named(program, refuses, tmp_path, monkeypatch, module, option):
    monkeypatch.setitem(sys.modules, f"hakmem_view.{module}", None)  # as if what it imports were not there
    monkeypatch.delattr(f"hakmem_view.{module}", raising=False)
    said = refuses("profile", "--seconds", "0", option, tmp_path / "x", program("on").pid)
    assert f"{option} needs the Python package" in said


def test_samples_that_found_no_room_are_told(program, view):
    assert "7 samples found no room and are missing: raise profile_bytes" in view("profile", "--seconds", "0",
                                                                                   program("drops").address).stdout


def test_nothing_from_outside_moves_the_terminal(program, view, tmp_path):
    done = view("profile", "--seconds", "0", "--collapsed", tmp_path / "c", program("evil").address)
    text = view("profile", tmp_path / "c.json") if (tmp_path / "c.json").exists() else done
    assert done.returncode == 0 and "\x1b" not in done.stdout + text.stdout + (tmp_path / "c").read_text()
    assert "\x1b" not in view("profile", "--seconds", "0", program("evil").address).stdout


# --- without any package -------------------------------------------------------------------------------


def plain(*words, status: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, "-S", TOOL, "profile", *map(str, words)], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == status, done
    return done


def test_plain_text_and_files(program, tmp_path):
    one = program()
    done = plain("--seconds", "0.1", one.pid)
    assert done.stderr == "" and f"process {one.pid} (program): " in done.stdout and "program+0x1100  < program+" in done.stdout
    assert max(map(len, done.stdout.splitlines()[2:])) <= 80
    names = ("json", "pprof", "heap-v2", "collapsed", "speedscope")
    done = plain("--seconds", "0", *(word for name in names for word in (f"--{name}", tmp_path / name)), one.pid)
    assert done.stdout == "" and (tmp_path / "pprof").read_bytes() == b"\x1f\x8bfake"
    assert json.loads((tmp_path / "json").read_text())["profile"] == 1
    assert "Sites by growth" in plain("--diff", tmp_path / "json", "--seconds", "0", one.pid).stdout
    assert "Growth is that of" in plain("--leaks", "--seconds", "0.1", one.pid).stdout
    assert plain("--alloc", tmp_path / "json").stdout.count("    program") == 4


def test_plain_explain_says_who_holds_a_cause(program):
    one = program("text-profile")
    done = subprocess.run([sys.executable, "-S", TOOL, "explain", str(one.pid)], capture_output=True, text=True, check=True)
    lines = done.stdout.replace("\u00a0", " ").splitlines()
    assert lines[0] == "hakmem: /explain.txt" and lines[1].startswith("live is held by program+0x1100: ")
    assert "slab_free is held by program+0x1100: 9.00 MiB" in lines


@pytest.mark.parametrize("words, said", [
    ([], "profile: a PID, a socket's path, a stored profile, or a program behind -- is wanted"),
    (["--frob", "1"], "profile: unrecognized arguments: --frob"), (["--html", "x", "1"], "profile: unrecognized arguments"),
    (["--rate", "0", "1"], "profile: argument --rate: '0' is no number of bytes (512k, 2m)"),
    (["--peak", "--alloc", "1"], "profile: argument --alloc: not allowed with argument --peak"), (["0"], "there is no process 0"),
    (["--seconds", "nan", "1"], "profile: --seconds and --rows are numbers of 0 and more"), (["1", "2"], "too many words: 2")])
def test_plain_errors_are_one_line(words, said):
    done = plain(*words, status=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and said in done.stderr


@pytest.mark.skipif(not SCHEMA.exists(), reason="the library has no heap profiler yet")
def test_synthetic_profiles_are_what_the_library_promises():
    load = synthetic.standard()
    load.sites[3].label = "0x5555"  # ours may be any text
    jsonschema.validate(synthetic.document(load), json.loads(SCHEMA.read_text(encoding="utf-8")))
