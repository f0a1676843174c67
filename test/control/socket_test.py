#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The socket of the control channel and the thread behind it: starts at the same time, crowds, rights.

Usage: socket_test.py PROGRAM
"""
import contextlib
import fcntl
import glob
import os
import socket
import sys
import threading

from channel import Program, connect, get, run_tests, wait_until


def opened_by_threads(pid):
    for link in glob.glob(f"/proc/{pid}/task/*/fd/*"):
        with contextlib.suppress(OSError):
            yield os.readlink(link)


def test_socket_that_is_about_to_listen_stays(folder):
    path = folder + "/s"
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    other = socket.socket(socket.AF_UNIX)
    other.bind(path)
    with Program("control:" + path) as program:
        wait_until("it waits for the folder", lambda: folder in opened_by_threads(program.pid))
        other.listen()
        os.close(lock)
        program.ready()
        there = os.stat(path).st_ino
    assert os.stat(path).st_ino == there
    assert "another process listens there" in program.error, program.error
    with connect(path):
        pass
    other.close()


def test_of_many_that_start_together_one_has_the_socket(folder):
    path = folder + "/s"
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Program("control:" + path)) for _ in range(12)]
        for program in programs:
            program.ready()
        assert get(path)[0] == 200
    failed = [program for program in programs if "another process listens there" in program.error]
    assert len(failed) == len(programs) - 1, [program.error for program in programs]
    assert os.listdir(folder) == []


def test_folder_that_somebody_keeps_holds_nobody_up_for_long(folder):
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with Program("control:" + folder + "/s") as program:
        program.ready()
        wait_until("a socket", lambda: os.listdir(folder) == ["s"])
        wait_until("it listens", lambda: get(folder + "/s")[0] == 200)
    os.close(lock)


def test_wait_outlasts_a_socket_that_is_bound_and_does_not_listen_yet(folder):
    path = folder + "/s"
    other = socket.socket(socket.AF_UNIX)
    other.bind(path)
    late = threading.Timer(0.1, other.listen)
    late.start()
    wait_until("it listens", lambda: connect(path).close() is None)
    late.join()
    other.close()


def test_failure_ends_what_it_started(folder):
    with contextlib.suppress(ZeroDivisionError):
        with Program("control:" + folder + "/s") as program:
            program.ready()
            os.kill(program.pid, 19)  # SIGSTOP: it does not end by itself
            raise ZeroDivisionError
    assert program.process.returncode is not None


def test_crowd_of_peers_is_let_in(folder):
    path = folder + "/s"
    with Program("control:" + path) as program:
        program.ready()
        os.kill(program.pid, 19)  # SIGSTOP: nobody accepts
        crowd = []
        for _ in range(40):
            peer = socket.socket(socket.AF_UNIX)
            peer.setblocking(False)
            peer.connect(path)
            crowd.append(peer)
        os.kill(program.pid, 18)
        for peer in crowd:
            peer.close()
        assert get(path)[0] == 200


def fields(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def test_thread_keeps_few_capabilities(folder):
    with Program("control:" + folder + "/s") as program:
        program.ready()
        assert get(folder + "/s")[0] == 200
        threads = [fields(path) for path in glob.glob(f"/proc/{program.pid}/task/*/status")]
        mine = next(thread for thread in threads if thread["Name"] == "hakmem")
        main = next(thread for thread in threads if thread["Name"] != "hakmem")
    needed = 1 << 6 | 1 << 7 | 1 << 14  # CAP_SETGID, CAP_SETUID, CAP_IPC_LOCK
    for name in ("CapPrm", "CapEff"):
        assert int(mine[name], 16) == int(main[name], 16) & needed, name
    assert int(mine["CapInh"], 16) == 0 and mine["NoNewPrivs"] == "1"
    with open("/proc/self/status", encoding="utf-8") as file:
        assert f"CapPrm:\t{main['CapPrm']}\n" in file.read()  # the program has all it had


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
