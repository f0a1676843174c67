# SPDX-License-Identifier: MIT
"""Ports, waiting for a condition, ending what was started."""

import contextlib
import itertools
import os
import signal
import socket
import time

FIRST_PORT, PORTS = 10_000, 20_000
NEXT = itertools.count(os.getpid() * 16)


def free_port():
    """A port of 127.0.0.1 that nobody listens on. It is below those that the kernel gives to
    whoever connects, and every process, and every call, begins to look elsewhere: nobody takes it
    before it is used."""
    for _ in range(PORTS):
        port = FIRST_PORT + next(NEXT) % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def accepts(port):
    """True if somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def kill_group(process):
    """End what a step has started and left behind: its own session, by the pid of its leader."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
