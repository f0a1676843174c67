# SPDX-License-Identifier: MIT
"""Whatever is asked for and whoever answers: one line on standard error, status 2, no traceback."""
import os
import signal
import socket
import subprocess
import sys

import pytest
from conftest import TOOL, asked
from fake_observer import ODD, ODD_LEARNERS, ODD_PROFILES

from hakmem_view import observer, profile_command
from hakmem_view.errors import ViewError
from hakmem_view.installed import own_version
from hakmem_view.model import Map, parse, read

OWN = own_version()
EITHER = "either a process (1) or a program"


@pytest.mark.parametrize("words, said", [
    (["stats"], "stats: PID|CORE is wanted"), (["stats", "1", "2"], "stats: too many words: 2"),
    (["stats", "--foo", "1"], "stats: unknown option '--foo'; there are: --json, --metrics"),
    (["stats", "--json", "--metrics", "1"], "either --json or --metrics"),
    (["top", "--interval"], "top: --interval needs a value"),
    (["top", "--interval", "0", "1"], "top: --interval should be greater"),
    (["top", str(os.getpid())], "top needs a terminal"),
    (["frob"], "unknown command 'frob'; there are: stats top explain map profile ps"),
    (["map", "--", "nonexist"], "there is no program 'nonexist' that can be started"),
    (["top", "--", "true"], "only map and profile take a program"),
    (["map", "--"], "no program behind --"), (["map", "1", "--", "true"], EITHER),
    (["map", "--lib", "x", "1"], "go with a program"), (["map"], "is wanted"),
    (["map", "--html", "a", "--png", "b", "1"], "either --html or --png"),
    (["stats", "0"], "there is no process 0"),
    (["top", "99999999999"], "there is no process 99999999999"),
    (["stats", "/gone"], "/gone is neither a PID nor a core file; `./hakmem ps` lists processes"),
    (["explain", "@hakmem-nobody"], "@hakmem-nobody is neither"), (["map", "/"], "/ is neither"),
    (["stats", ""], "an empty word is neither"), (["profile", "/gone"], "/gone is neither a PID nor a core file"),
    (["profile", "--stop", "@hakmem-nobody"], "@hakmem-nobody is neither"),
    (["profile"], "a PID, a core file, a stored profile, or a program behind -- is wanted"),
    (["profile", "--rate", "much", "1"],
     "profile: --rate: 'much' is no number of bytes (512k, 2m)"),
    (["profile", "--rate", "0", "1"], "'0' is no number of bytes"),
    (["profile", "--rate", "99999g", "1"], "is no number of bytes"),
    (["profile", "--seconds", "-1", "1"], "profile: --seconds should be"),
    (["profile", "--seconds", "nan", "1"], "--seconds should be"),
    (["profile", "--leaks", "--peak", "1"], "either --peak or --leaks, not both"),
    (["profile", "--diff", "x", "--alloc", "1"], "either --alloc or --diff, not both"),
    (["profile", "--diff", "/gone", "1"], "cannot read /gone"),
    (["profile", "--frob"], "profile: unknown option '--frob'; there are: --rate, --seconds"),
    (["profile", "--lib", "x", "1"], "--profile and --lib go with a program behind --"),
    (["profile", "1", "--", "true"], EITHER),
    (["profile", "--json", "/gone/x", "--", "true"], "cannot write /gone/x: there is no folder /gone"),
    (["map", "--html", "/gone/x", "--", "true"], "cannot write /gone/x: there is no folder /gone"),
    (["profile", "--", "/gone/program"], "there is no program '/gone/program'")])
def test_words_on_the_command_line(refuses, words, said):
    assert said in refuses(*words)


@pytest.mark.parametrize("entry", ["command.py", "exporter.py", "lab.py", "view.py"])
def test_interrupt_while_modules_load_leaves_no_traceback(tmp_path, entry):
    (tmp_path / "sitecustomize.py").write_text("""import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name.startswith("hakmem_"):
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
""")
    done = subprocess.run([sys.executable, TOOL.with_name(entry), "ps"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGINT and not done.stdout + done.stderr, done


def test_a_file_that_cannot_be_written_is_told_before_the_process_samples(program, refuses):
    one = program()
    assert "there is no folder /gone" in refuses("profile", "--json", "/gone/x", "--seconds", "1", one.pid)
    assert "it is a folder" in refuses("profile", "--collapsed", "/", "--seconds", "1", one.pid) and asked(one) == []


@pytest.mark.parametrize("begins, error", [(True, KeyboardInterrupt), (False, KeyboardInterrupt), (True, ViewError)])
def test_interrupt_as_sampling_begins_leaves_none_on(program, monkeypatch, begins, error):
    """Whether or not the process had heard of it by then."""
    one = program()
    first = observer.Observed.tell

    def tell(self, *words, **options):
        if words == ("rate", "0"):
            return first(self, *words, **options)
        if begins:
            first(self, *words, **options)
        raise error
    monkeypatch.setattr(observer.Observed, "tell", tell)
    with pytest.raises(error):
        profile_command.Session(observer.Observed(str(one.pid), one.pid), profile_command.Asked([str(one.pid)], keep=True))
    assert asked(one) == ["524288"] * begins + ["0"]


# --- processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_process_that_has_ended(refuses, is_waited_for):
    done = subprocess.Popen(["true"])
    os.waitid(os.P_PID, done.pid, os.WEXITED | (0 if is_waited_for else os.WNOWAIT))
    for words in (["explain"], ["profile"], ["profile", "--stop"]):
        assert f"there is no process {done.pid}" in refuses(*words, done.pid)
    done.poll()


def test_process_without_the_library_is_told_the_option(program, refuses):
    one = program("nothing")
    for command in ("stats", "profile"):
        said = refuses(command, one.pid)
        assert f"process {one.pid} (" in said and "does not run on hakmem" in said
        assert "./hakmem run -- PROGRAM" in said


@pytest.mark.parametrize("mode, said", [
    ("asleep", "has not answered within 5 s"), ("refuses", "refuses: it is set-uid"),
    ("waits", "has not answered what another asked, so nothing was asked within 5 s: all its threads sleep"),
    ("filtered", "it is left alone; start it with HAKMEM_OPTIONS=profile_rate:512k")])
def test_process_that_does_not_begin_to_sample(program, refuses, mode, said):
    one = program(mode)
    for words in (["--seconds", "0"], ["--stop"]):
        assert said in refuses("profile", *words, one.pid)


def test_a_request_to_sample_that_came_too_late_is_taken_back(program, refuses):
    one = program("asleep")
    back = "within 5 s, so the request was taken back: all its threads sleep"
    assert back in refuses("profile", "--seconds", "0", one.pid) and "taken back" not in refuses("profile", "--stop", one.pid)


# --- answers --------------------------------------------------------------------------------------


def test_answers_of_another_form(program, refuses):
    said = refuses("stats", program("schema").pid)
    assert f"has schema 2 (hakmem 0.9.0), this tool reads schema 1 (hakmem {OWN})" in said
    assert "is not JSON" in refuses("profile", "--seconds", "0", program("cut-json").pid)


@pytest.mark.parametrize("words", [["top", "--once"], ["explain"], ["map"]],
                         ids=lambda words: words[0])
@pytest.mark.parametrize("mode", ["schema", "cut-json"])
def test_bad_answer_to_every_command_by_pid(program, refuses, words, mode):
    assert refuses(*words, program(mode).pid)


@pytest.mark.parametrize("command, words, mode", [
    *(("stats", "the statistics of process", f"odd{at}") for at in range(len(ODD))),
    *(("explain", "the explanation of process", f"learner{at}") for at in range(len(ODD_LEARNERS))),
    *(("profile", "the profile of process", f"profile{at}") for at in range(len(ODD_PROFILES)))])
def test_fields_of_wrong_types(program, refuses, command, words, mode):
    options = ["--seconds", "0"] if command == "profile" else []
    assert f"{words} " in refuses(command, *options, program(mode).pid)


NO_JSON = ["", "[]", "{}", "[" * 100_000, "1" * 9000, "\x00"]


@pytest.mark.parametrize("text", [*NO_JSON, '{"schema": 1, "superslabs": {}}', '{"schema": null}',
                                  '{"schema": 1, "superslab_units": -4}',
                                  '{"schema": 1, "huge": [[]]}',
                                  '{"schema": 1, "superslabs": [{"spans": [{"unit": 63, "units": 9}]}]}',
                                  '{"schema": 1, "superslabs": [{"spans": [{"unit": ' + "9" * 5000 + "}]}]}"])
def test_malformed_map(text):
    with pytest.raises(ViewError):
        read(Map.of, parse(text.encode(), "it"), "it")


@pytest.mark.parametrize("text", NO_JSON)
def test_stored_profiles_that_are_none(refuses, tmp_path, text):
    (tmp_path / "p.json").write_text(text, encoding="latin-1")
    said = "is no profile of hakmem" if text in ("[]", "{}") else "is not JSON"
    assert said in refuses("profile", tmp_path / "p.json")
    assert said in refuses("profile", "--diff", tmp_path / "p.json", "1")


# --- files ----------------------------------------------------------------------------------------


def test_sockets_are_not_needed(refuses, tmp_path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        for command in ("map", "profile"):
            assert "is a socket, which is not needed: name the process by its PID" in refuses(command, tmp_path / "socket")


def test_files_that_cannot_be_written(program, refuses, tmp_path):
    one, file = program("on"), tmp_path / "gone" / "file"
    for words in (["map", "--html"], ["explain", "--html"], ["top", "--interval", "0.1", "--svg"]):
        assert "cannot write" in refuses(words[0], *words[1:], file, one.pid)
    for name in ("html", "json", "pprof", "otlp", "heap-v2", "collapsed", "speedscope"):
        assert "cannot write" in refuses("profile", "--seconds", "0", f"--{name}", file, one.pid)


@pytest.mark.parametrize("module, option",
                         [("profile_pprof", "--pprof"), ("profile_otlp", "--otlp"),
                                            ("profile_page", "--html")])
def test_packages_that_are_missing_are_named(program, refuses, tmp_path, monkeypatch, module,
                                             option):
    monkeypatch.setitem(sys.modules, f"hakmem_view.{module}",
                        None)  # as if its imports were not there
    monkeypatch.delattr(f"hakmem_view.{module}", raising=False)
    said = refuses("profile", "--seconds", "0", option, tmp_path / "x", program("on").pid)
    assert f"{option} needs the Python package" in said
