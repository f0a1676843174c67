#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whose files the report at exit is written to, inside of user namespaces.

The kernel shows every user that a namespace has no ID for as the overflow ID, 65534: that may be the
ID of the program's own user as well, as of programs run as nobody in a container.

Usage: report_users_test.py PROGRAM
"""
import ctypes
import os
import stat
import sys

from reporting import Program, SkipTest, run_tests

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
ALL = "0 0 4294967295"  # every ID there is
CONTAINER = "0 100000 65536"
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
            os.close(writing)
            if not os.read(reading, 1):
                os._exit(0)  # there is no namespace; what waits for the program's start has this process's pipes, too
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
