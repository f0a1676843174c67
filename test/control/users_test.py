#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may ask, and whose files are written to, inside of user namespaces.

The kernel shows every user that a namespace has no ID for as the overflow ID, 65534: that may be the
ID of the program's own user as well, as of programs run as nobody in a container.

Usage: users_test.py PROGRAM
"""
import ctypes
import os
import stat
import sys
import time

from channel import Program, SkipTest, connect, run_tests

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
ALL = "0 0 4294967295"  # every ID there is
CONTAINER = "0 100000 65536"
HOSTS = (0, 33, 1000, NOBODY)  # users of the host, none of whom is in that container
LIBC = ctypes.CDLL(None, use_errno=True)


def host_has_all_users():
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return file.read().split() == ALL.split()


def needs_root_of_the_host():
    if os.getuid() != 0 or not host_has_all_users():
        raise SkipTest("needs root of the host: others' IDs are chosen")


def write_map(pid, name, text):
    with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
        file.write(text)


def enter(id_map, user):
    """For preexec_fn: the child is in a user namespace of this map ("": of none), as this user of it."""
    def run():
        pid = os.getpid()
        reading, writing = os.pipe()
        helper = os.fork()  # stays outside, from where maps are written
        if helper == 0:
            os.read(reading, 1)
            if os.getuid() != 0:
                write_map(pid, "setgroups", "deny")
            for name in ("uid_map", "gid_map") if id_map else ():
                write_map(pid, name, id_map)
            os._exit(0)
        if LIBC.unshare(CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        os.write(writing, b"x")
        if os.waitpid(helper, 0)[1] != 0:
            raise OSError("no map")
        os.close(reading)
        os.close(writing)
        if user is not None:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
    return run


def program_in(id_map, user, options, *words):
    """SkipTest: the kernel allows no user namespace here."""
    try:
        return Program(options, *words, preexec_fn=enter(id_map, user))
    except Exception as error:  # pylint: disable=broad-except
        raise SkipTest(f"no user namespace can be made: {error}") from error


def answers(name, user=None, request=b"GET /map.json HTTP/1.0\r\n\r\n"):
    """Whether this user of the host, or None, who runs the test, gets an answer."""
    child = os.fork()
    if child == 0:
        try:
            if user is not None:
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            while True:
                begin = time.monotonic()
                sock = connect(name)
                sock.send(request)
                if time.monotonic() < begin + 0.5:  # else it came later than peers are waited for
                    break
            os._exit(0 if sock.recv(10) else 1)
        except ConnectionError:
            os._exit(1)
        finally:
            os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1), status
    return status == 0


def test_stranger_who_looks_like_nobody_is_not_answered(_folder):
    needs_root_of_the_host()
    with program_in(CONTAINER, NOBODY, "control:@hak_users.%p") as program:
        program.ready()
        name = f"@hak_users.{program.pid}"
        assert answers(name, 100000), "root of the namespace"
        for user in HOSTS:
            assert not answers(name, user), f"GET answered user {user} of the host"
            assert not answers(name, user, b"POST /trim HTTP/1.0\r\n\r\n"), f"POST answered user {user} of the host"
        assert answers(name, 100000)
    assert program.error == ""


def test_stranger_is_not_answered_where_only_the_overflow_id_is_itself(_folder):
    """A map that is the identity over 65534 leaves others who are shown as it."""
    needs_root_of_the_host()
    with program_in(f"0 0 1\n{NOBODY} {NOBODY} 1", NOBODY, "control:@hak_users.%p") as program:
        program.ready()
        name = f"@hak_users.{program.pid}"
        assert answers(name, 0)
        for user in (33, 1000):
            assert not answers(name, user), f"answered user {user} of the host"


def test_user_of_a_namespace_with_an_id_of_its_own_is_answered(_folder):
    needs_root_of_the_host()
    with program_in(CONTAINER, 1000, "control:@hak_users.%p") as program:
        program.ready()
        name = f"@hak_users.{program.pid}"
        assert answers(name, 101000) and answers(name, 100000)
        for user in (*HOSTS, 100033):
            assert not answers(name, user), f"answered user {user} of the host"


def test_nobody_is_answered_where_every_user_has_an_id(_folder):
    needs_root_of_the_host()
    for program in (Program("control:@hak_users.%p", "user"), program_in(ALL, NOBODY, "control:@hak_users.%p")):
        with program:
            program.ready()
            name = f"@hak_users.{program.pid}"
            assert answers(name, NOBODY) and answers(name, 0)
            for user in (33, 1000):
                assert not answers(name, user), f"answered user {user}"


def test_namespace_without_a_map_answers_nobody(_folder):
    with program_in("", None, "control:@hak_users.%p") as program:
        program.ready()
        name = f"@hak_users.{program.pid}"
        for user in (None, *(HOSTS if os.getuid() == 0 else ())):
            assert not answers(name, user), f"answered user {user} of the host"


def test_single_user_that_is_called_nobody_is_not_told_from_strangers(_folder):
    """Also without any right: who runs the test is the only user of the namespace."""
    for mapped, expected in ((NOBODY, False), (1234, True)):
        with program_in(f"{mapped} {os.getuid()} 1", None, "control:@hak_users.%p") as program:
            program.ready()
            assert answers(f"@hak_users.{program.pid}") == expected, mapped


def test_nobody_that_changed_its_root_is_answered(_folder):
    """Without /proc from then on."""
    needs_root_of_the_host()
    with Program("control:@hak_users.%p", "chroot_user", "/var") as program:
        program.ready()
        name = f"@hak_users.{program.pid}"
        assert answers(name, NOBODY) and not answers(name, 1000)


def file_of(path, user, mode):
    with open(path, "w", encoding="ascii") as file:
        file.write("mine")
    os.chown(path, user, user)
    os.chmod(path, mode)


def report_in(id_map, user, path):
    with program_in(id_map, user, "report:exit,report_file:" + path) as program:
        program.ready()
    assert program.process.returncode == 0
    return program.error


def test_file_of_a_stranger_who_looks_like_nobody_stays(folder):
    needs_root_of_the_host()
    path = folder + "/r"
    os.chmod(folder, 0o777)
    for user in (33, 1000):
        file_of(path, user, 0o666)
        error = report_in(CONTAINER, NOBODY, path)
        with open(path, encoding="ascii") as file:
            assert file.read() == "mine", f"user {user}'s file was written to"
        assert error.count("\n") == 1 and "of this user" in error, error
    os.unlink(path)
    os.mkfifo(path)
    os.chown(path, 1000, 1000)
    os.chmod(path, 0o666)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    error = report_in(CONTAINER, NOBODY, path)
    assert os.read(reading, 100) == b"", "user 1000's pipe was written to"
    os.close(reading)
    assert error.count("\n") == 1 and "of this user" in error, error


def test_file_of_its_own_is_written_again_by_nobody(folder):
    needs_root_of_the_host()
    path = folder + "/r"
    os.chmod(folder, 0o777)
    for _ in range(2):
        assert report_in(CONTAINER, NOBODY, path) == ""
        assert os.stat(path).st_size > 100 and os.stat(path).st_uid == 100000 + NOBODY
        os.truncate(path, 1)
        os.chmod(path, 0o640)
    report_in(CONTAINER, NOBODY, path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
