#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The control channel from outside: when it is there, for whom, and what it leaves to the program.

Usage: control_test.py PROGRAM
"""
import json
import os
import socket
import stat
import sys

from channel import HELD_BACK_MIB, Program, SkipTest, connect, get, run_tests, wait_until

ON_MUSL = os.environ.get("HAKMEM_FLAVOUR") == "musl"

PAGES = ["/", "/summary.txt", "/stats.txt", "/stats.json", "/metrics", "/explain.txt", "/explain.json", "/map.json",
         "/profile", "/heap.pb.gz", "/leaks.txt", "/options.json"]
SCHEMA = os.path.join(os.path.dirname(__file__), "../../docs/schema/trim.schema.json")


def test_idle_program_answers_as_soon_as_it_runs(folder):
    path = folder + "/s"
    with Program("control:" + path, "idle") as program:
        program.ready()
        status, headers, body = get(path)
        assert status == 200 and body.splitlines() == [*PAGES, "POST /trim", "POST /profile"], body
        assert headers["X-Hakmem-Control"] == "1" and headers["Server"].startswith("hakmem/")
        for page in set(PAGES) - {"/heap.pb.gz"}:  # which is no text
            assert get(path, page)[0] == 200, page
        assert get(path, "/other")[0] == 404
        assert get(path, method="POST")[0] == 405
    assert program.error == "" and program.process.returncode == 0
    assert os.listdir(folder) == []


def retained_dirty(explained):
    return next(cause for cause in explained["causes"] if cause["name"] == "retained_dirty")


def test_trim_returns_what_is_unused(folder):
    path = folder + "/s"
    with Program("retain_min:1g,retain_percent:1000,control:" + path, "large") as program:
        program.ready()
        before = json.loads(get(path, "/explain.json")[2])
        assert get(path, "/trim")[0] == 405  # to ask changes nothing
        unused = retained_dirty(before)
        assert unused["returnable_bytes"] == unused["bytes"] >= 30 - HELD_BACK_MIB << 20
        status, _, body = get(path, "/trim", "POST")
        answer = json.loads(body)
        assert status == 200 and answer["pid"] == program.pid and answer["command"] == "control_program"
        with open(SCHEMA, encoding="utf-8") as schema:
            assert set(answer) == set(json.load(schema)["properties"])
        assert answer["returned_bytes"] == answer["rss_before_bytes"] - answer["rss_bytes"]
        # The process touches pages of its own meanwhile: code that did not run before, a stack.
        assert answer["returned_bytes"] >= unused["bytes"] - (64 << 10), (answer, unused)
        assert retained_dirty(json.loads(get(path, "/explain.json")[2]))["bytes"] == 0
        assert json.loads(get(path, "/trim", "POST")[2])["returned_bytes"] < 1 << 20
    assert program.error == ""


def expect_unanswered(path, user):
    """Another user is hung up on, with no answer."""
    child = os.fork()
    if child == 0:
        try:
            os.setgid(user)
            os.setuid(user)
            sock = connect(path)
            sock.send(b"GET / HTTP/1.0\r\n\r\n")
            os._exit(len(sock.recv(10)) != 0)
        except ConnectionError:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_socket_is_the_owners_alone(folder):
    path = folder + "/s"
    old = os.umask(0)
    try:
        with Program("control:" + path) as program:
            program.ready()
            assert stat.S_IMODE(os.lstat(path).st_mode) == 0o600
            if os.getuid() != 0:
                raise SkipTest("only root can be another user")
            os.chmod(path, 0o666)  # even so: the peer's user is looked at
            expect_unanswered(path, 65534)
            assert get(path)[0] == 200
    finally:
        os.umask(old)


def test_abstract_name_is_the_owners_alone(_folder):
    if os.getuid() != 0:
        raise SkipTest("only root can be another user")
    with Program("control:@hak_test.%p", "user") as program:
        program.ready()
        name = f"@hak_test.{program.pid}"
        assert get(name)[0] == 200  # root, though the process is not
        expect_unanswered(name, 1)


def descriptors(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd"))


def test_program_has_no_descriptor_of_it(folder):  # CONTROL-2
    with Program("control:" + folder + "/s", close_fds=True) as program:
        program.ready()
        assert descriptors(program.pid) == ["0", "1", "2"]
        sock = connect(folder + "/s")
        get_is_possible = len(descriptors(program.pid)) == 3
        sock.close()
        assert get_is_possible and get(folder + "/s")[0] == 200


def test_program_that_closes_and_reuses_all_descriptors_is_served(folder):
    with Program("control:" + folder + "/s", "close_all") as program:
        program.ready()  # and no number was taken
        for _ in range(20):
            assert get(folder + "/s")[0] == 200
        assert len(descriptors(program.pid)) == 66


def test_child_has_a_socket_of_its_own(folder):
    with Program("control:" + folder + "/%p", "fork") as program:
        program.ready()
        wait_until("two sockets", lambda: len(os.listdir(folder)) == 2)
        names = os.listdir(folder)
        assert str(program.pid) in names
        for name in names:
            wait_until("an answer", lambda name=name: get(f"{folder}/{name}")[0] == 200)
    assert os.listdir(folder) == [] and program.error == ""


def test_child_without_a_path_of_its_own_leaves_the_parents(folder):
    path = folder + "/s"
    with Program("control:" + path, "fork") as program:
        program.ready()
        assert os.listdir(folder) == ["s"] and get(path)[0] == 200
        program.process.stdin.close()  # the child ends, and then the parent
        program.process.wait()
        program.out, program.error = "", program.process.stderr.read()
    assert os.listdir(folder) == [] and program.error == ""


def test_exec_takes_the_socket_over(folder):
    path = folder + "/s"
    with Program("control:" + path, "exec") as program:
        program.ready()
        assert get(path)[0] == 200
    assert os.listdir(folder) == [] and program.error == ""


def test_chroot_changes_nothing_but_the_removal(folder):
    path = folder + "/s"
    with Program("control:" + path, "chroot", "/var") as program:
        program.ready()
        assert get(path)[0] == 200
    assert os.listdir(folder) == ["s"] and program.process.returncode == 0


def test_main_that_leaves_ends_the_process_as_usual(folder):
    with Program("control:" + folder + "/s", "leave_main") as program:
        program.finish()
    assert program.process.returncode == 0 and program.out == "flushed\n" and program.error == ""
    assert os.listdir(folder) == []


def test_main_of_a_child_that_leaves_ends_it_as_usual(folder):
    if ON_MUSL:
        return  # before 1.2.4 no child of a fork ends so, whatever its malloc
    with Program("control:" + folder + "/%p", "fork_leave") as program:
        program.finish()
    assert program.process.returncode == 0 and program.out == "flushed\n" * 2 and program.error == ""
    assert os.listdir(folder) == []


def test_socket_left_over_is_replaced(folder):
    path = folder + "/s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    with Program("control:" + path) as program:
        program.ready()
        assert get(path)[0] == 200
    assert os.listdir(folder) == [] and program.error == ""


def test_file_that_is_called_like_an_abstract_name_stays(folder):
    mine = socket.socket(socket.AF_UNIX)
    mine.bind(folder + "/@hak_file")
    mine.close()
    with Program("control:@hak_file", cwd=folder) as program:
        program.ready()
        assert get("@hak_file")[0] == 200
    assert os.listdir(folder) == ["@hak_file"] and program.error == ""


def test_cancellation_waits_until_a_failed_start_is_told(folder):
    with Program(f"control:{folder}/%p", "fork_cancel") as program:
        program.finish()
    assert program.process.returncode == 0 and program.out == "survived\n", program.out


def refused(folder, path, *words, name="", options="control:"):
    """The program runs without a socket; the only line of warning, which has the words in it."""
    before = sorted(os.listdir(folder))
    with Program(options + path) as program:
        program.ready()
        assert sorted(os.listdir(folder)) == before, name
    lines = program.error.splitlines()
    assert len(lines) == 1 and all(word in lines[0] for word in ("hakmem: control: ", *words)), lines
    assert sorted(os.listdir(folder)) == before and program.process.returncode == 0


def test_file_that_is_no_socket_stays(folder):
    with open(folder + "/s", "w", encoding="utf-8") as file:
        file.write("mine")
    refused(folder, folder + "/s", "no socket is there")
    with open(folder + "/s", encoding="utf-8") as file:
        assert file.read() == "mine"
    os.unlink(folder + "/s")
    os.symlink(folder + "/elsewhere", folder + "/s")
    refused(folder, folder + "/s", "no socket is there")


def test_socket_of_another_process_stays(folder):
    path = folder + "/s"
    with Program("control:" + path) as first:
        first.ready()
        refused(folder, path, "another process", "%p")
        assert get(path)[0] == 200
    with Program("control:@hak_twice") as first:
        first.ready()
        refused(folder, "@hak_twice", "another process")


def test_path_that_takes_no_socket_gives_one_line(folder):
    refused(folder, folder + "/none/s", "no socket can be made")
    refused(folder, (folder + "/" + "x" * 107)[:105] + "%p", "too long")
    refused(folder, "@", "name has to follow")
    for relative in ("s", "./s", "../s"):
        refused(folder, relative, "begin with a /")
    refused(folder, "/proc/self/s", "no socket can be made")  # read-only, for root, too


def test_socket_of_a_successor_stays(folder):
    path = folder + "/s"
    with Program("control:" + path) as program:
        program.ready()
        os.unlink(path)
        other = socket.socket(socket.AF_UNIX)
        other.bind(path)
    assert os.listdir(folder) == ["s"]
    other.close()


def test_silent_and_slow_peers_hold_up_nobody_for_long(folder):  # CONTROL-1, CONTROL-3
    path = folder + "/s"
    with Program("control:" + path) as program:
        program.ready()
        silent = [connect(path) for _ in range(3)]
        silent[1].send(b"GET / HTTP/1.0\r\n")
        silent[2].send(b"x" * 5000)
        assert get(path)[0] == 200
        assert b" 400 " in silent[1].recv(100) and b" 400 " in silent[2].recv(100)
        assert silent[0].recv(100) == b""
        for sock in silent:
            sock.close()


def test_force_libc_is_served(folder):
    if ON_MUSL:
        return  # its malloc has no second name
    with Program("force_libc:1,control:" + folder + "/s", "allocate") as program:
        program.ready()
        assert get(folder + "/s", "/stats.txt")[0] == 200
    assert os.listdir(folder) == [] and program.error == ""


def test_without_standard_error_it_is_served(folder):
    with Program("control:" + folder + "/s", "close_error") as program:
        program.ready()
        assert get(folder + "/s")[0] == 200


def test_user_that_changes_is_served(folder):
    os.chmod(folder, 0o777)
    with Program("control:" + folder + "/s", "user") as program:
        program.ready()
        assert get(folder + "/s")[0] == 200
        assert program.error is None


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
