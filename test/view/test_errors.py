# SPDX-License-Identifier: MIT
"""Whatever is on the other side: one line on standard error, status 2, no traceback."""
import os
import socket
import subprocess

import pytest
from fake_server import ODD, ODD_LEARNERS

from hakmem_view import channel, process, source
from hakmem_view.errors import Slow, ViewError

OWN = source.own_version()


def test_dead_process(refuses):
    done = subprocess.Popen(["true"])
    done.wait()
    assert f"there is no process {done.pid}" in refuses("stats", done.pid)
    assert "there is no process 0" in refuses("stats", 0)
    assert "there is no process 99999999999" in refuses("top", "99999999999")


def test_process_that_has_ended_but_is_not_waited_for(refuses):
    done = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    done.stdout.read()
    os.waitid(os.P_PID, done.pid, os.WEXITED | os.WNOWAIT)
    assert f"there is no process {done.pid}" in refuses("explain", done.pid)
    done.wait()


def test_process_without_the_library_is_told_the_option(program, refuses):
    one = program("nothing")
    said = refuses("stats", one.pid)
    assert f"process {one.pid} (" in said and "does not run on hakmem" in said
    assert "HAKMEM_OPTIONS=control:@hakmem-%p ./hakmem run -- PROGRAM" in said


def test_process_without_control_socket_is_told_the_option(program, monkeypatch):
    one = program("nothing")
    monkeypatch.setattr(process, "LIBRARY", "libc")  # as if it were ours
    with pytest.raises(ViewError, match=r"has no control socket; start it with HAKMEM_OPTIONS=control:@hakmem-%p"):
        source.find(str(one.pid))


@pytest.mark.parametrize("name, words", [
    ("@app-%p", "a forked child gets one once it has allocated a little"), ("/tmp/app", "the name has no %p"),
    ("run/app-%p", "the name run/app-%p is relative to a folder it may have left")])
def test_process_that_was_told_to_have_a_socket(program, monkeypatch, name, words):
    monkeypatch.setenv("HAKMEM_OPTIONS", f"learn:0,control:{name}")
    one = program("nothing")
    monkeypatch.setattr(process, "LIBRARY", "libc")  # as if it were ours
    with pytest.raises(ViewError) as caught:
        source.find(str(one.pid))
    assert f"was started with control:{name}, but has no such socket: " in str(caught.value)
    assert words in str(caught.value)


def test_process_whose_maps_cannot_be_read(program, monkeypatch):
    one = program("nothing")
    monkeypatch.setattr(process, "has_library", lambda pid: None)
    with pytest.raises(ViewError, match="cannot be looked into"):
        source.find(str(one.pid))


@pytest.mark.parametrize("mode", ["foreign", "garbage", "early", "datagram"])
def test_other_sockets_of_a_process_are_none_of_ours(program, refuses, mode):
    assert "HAKMEM_OPTIONS=control:@hakmem-%p" in refuses("stats", program(mode, f"@other-{os.getpid()}-{mode}").pid)


@pytest.mark.parametrize("mode, words", [
    ("foreign", "is not a control socket of hakmem"),
    ("garbage", "is not a control socket of hakmem"),
    ("early", "closed the connection without an answer"),
    ("short", "closed the connection after"),
    ("cut-json", "/stats.json of @hakmem-test-"),
    ("cut-json", "is not JSON"),
    ("busy", "refuses /stats.json: 503"),
    ("old", f"does not serve /stats.json: hakmem 0.1.0, this tool is hakmem {OWN}"),
    ("newer", f"speaks version 2 of the control channel (hakmem 0.9.0), this tool version 1 (hakmem {OWN})"),
    ("schema", f"has schema 2 (hakmem 0.9.0), this tool reads schema 1 (hakmem {OWN})"),
])
def test_bad_answer_at_a_path(program, refuses, mode, words):
    assert words in refuses("stats", program(mode).address)


@pytest.mark.parametrize("command", ["stats", "top", "explain", "map"])
@pytest.mark.parametrize("mode", ["newer", "schema", "cut-json", "short"])
def test_bad_answer_to_every_command_by_pid(program, refuses, command, mode):
    words = [command, "--once"] if command == "top" else [command]
    assert refuses(*words, program(mode).pid)


@pytest.mark.parametrize("at", range(len(ODD)))
def test_fields_of_wrong_types(program, refuses, at):
    assert "/stats.json of process" in refuses("stats", program(f"odd{at}").pid)


@pytest.mark.parametrize("at", range(len(ODD_LEARNERS)))
def test_malformed_learner(program, refuses, at):
    assert "/explain.json of process" in refuses("explain", program(f"learner{at}").pid)


@pytest.mark.parametrize("text", ["[]", "{}", "7", '{"schema": 1, "superslabs": {}}', "[" * 100_000, '{"schema": null}',
                                  '{"schema": 1, "superslab_units": -4}', '{"schema": 1, "huge": [[]]}', "\x00", "",
                                  '{"schema": 1, "superslabs": [{"spans": [{"unit": 63, "units": 9}]}]}',
                                  '{"schema": 1, "superslabs": [{"spans": [{"unit": ' + "9" * 5000 + "}]}]}"])
def test_malformed_map(text):
    from hakmem_view.model import Map, read
    with pytest.raises(ViewError):
        read(Map.of, source.parse(text.encode(), "it"), "it")


def test_inherited_socket_is_not_taken_for_the_child(program, refuses):
    said = refuses("stats", program("inherited").pid)
    assert f"only inherited a socket, which process {os.getpid()} serves" in said


def test_no_such_socket(refuses, tmp_path):
    assert "there is no socket" in refuses("stats", tmp_path / "gone")
    assert "nobody listens at @hakmem-nobody" in refuses("stats", "@hakmem-nobody")
    (tmp_path / "file").write_text("no socket")
    assert refuses("stats", tmp_path / "file") == f"hakmem: {tmp_path / 'file'} is no socket\n"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale"))
    stale.close()
    assert "nobody listens at" in refuses("map", tmp_path / "stale")
    assert "a PID, a path" in refuses("stats", "") and "a PID, a path" in refuses("stats", "@")
    assert "%p stands for the PID" in refuses("stats", "@hakmem-%p")


def test_abstract_name_without_its_sign(program, refuses):
    name = f"hakmem-bare-{os.getpid()}"
    program("ok", f"@{name}")
    assert refuses("stats", name) == f"hakmem: there is no socket {name}, but an abstract one: @{name}\n"


def test_slow_answer(program):
    one = program("slow")
    with pytest.raises(Slow, match="does not answer within 0 s"):
        channel.ask(one.address, "/", 0.2)


def test_words_on_the_command_line(refuses):
    assert refuses("stats") == "hakmem: stats: PID|PATH is wanted\n"
    assert refuses("stats", "--foo", 1) == "hakmem: stats: unknown option '--foo'; there are: --json, --metrics\n"
    assert refuses("stats", 1, 2) == "hakmem: stats: too many words: 2\n"
    assert refuses("top", "--interval") == "hakmem: top: --interval needs a value\n"
    assert "hakmem: top: --interval should be greater" in refuses("top", "--interval", "0", 1)
    assert refuses("frob") == "hakmem: unknown command 'frob'; there are: stats top explain map profile ps\n"
    assert refuses("map", "--", "nonexist") == "hakmem: there is no program 'nonexist' that can be started\n"
    assert "either --json or --metrics" in refuses("stats", "--json", "--metrics", 1)
    assert "only map and profile take a program" in refuses("top", "--", "true")
    assert "no program behind --" in refuses("map", "--")
    assert "either a process (1) or a program" in refuses("map", 1, "--", "true")
    assert "go with a program" in refuses("map", "--lib", "x", 1)
    assert "is wanted" in refuses("map")
    assert "top needs a terminal" in refuses("top", "@hakmem-nobody")


def _as_nobody(word: str) -> str:
    """What another user is told."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "it was allowed"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            source.find(word).read("/stats.json")
        except ViewError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as text:
        found = text.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user(program, tmp_path_factory):
    one = program()
    assert _as_nobody(str(one.pid)) == \
        f"no permission to look into {process.called(one.pid)}: only user root and root may"
    path = f"/tmp/hakmem-test-{os.getpid()}"
    file = program("ok", path)
    os.chmod(path, 0o600)
    try:
        assert file.poll() is None
        assert _as_nobody(path) == f"no permission to connect to {path}: only its owner and root may"
    finally:
        os.unlink(path)
