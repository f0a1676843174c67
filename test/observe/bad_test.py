#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is whatever cannot be observed one clear line and status 1?

    bad_test.py OBSERVER PROGRAM LIBRARY

PROGRAM is the load. Processes without hakmem, that are gone or are being traced; core files that are none, cut off, of
another machine, version or build; words that are no command.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import core_file
from core_file import copied, patched
from observing import load, observe, refused, require_reading

DOOR = re.search(r"HAK_DOOR_VERSION (\d+)", Path(os.environ["HAKMEM_SOURCE"], "src/door/door.h").read_text())[1]
NOTE = struct.pack("<III", 7, 12, 1) + b"hakmem\0\0"  # src/door/door.h
CUTS = 12


def processes(observer):
    refused(observer, "there is no process 2147483647", "explain", "2147483647")
    refused(observer, "that is no PID", "explain", "99999999999")
    with subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE,
                          env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}) as other:
        other.stdout.readline()  # before that it may have no program yet, in the midst of exec
        for words in ((), ("--stop",), ("--json",)):
            status, _, error = observe(observer, "explain", other.pid, *words)
            lines = [line for line in error.splitlines() if "stood still" not in line]
            assert status == 1 and lines == ["hakmem-observe: the process does not use hakmem"], error
        other.kill()
    refused(observer, f"there is no process {other.pid}", "stats", other.pid)
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    refused(observer, f"process {ended.pid} has no memory", "explain", ended.pid)
    ended.wait()
    refused(observer, "", "explain", 2)  # a thread of the kernel, or no process here


def other_version(observer, library):
    """A library that differs only in the version of its description."""
    data = bytearray(Path(library).resolve().read_bytes())
    at = data.index(NOTE) + len(NOTE)
    data[at:at + 4] = struct.pack("<I", 77)
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, "libhakmem.so")
        changed.write_bytes(data)
        with subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE,
                              env={**os.environ, "LD_PRELOAD": str(changed)}) as process:
            process.stdout.readline()
            refused(observer, f"the process has hakmem with description 77, and this program reads {DOOR}", "explain", process.pid)
            process.kill()


def core_files(observer, core, library):
    folder = core.parent
    empty, text = Path(folder, "empty"), Path(folder, "text")
    empty.write_bytes(b"")
    text.write_text("no core file\n" * 100)
    for none in (empty, text, library, folder):
        refused(observer, "is no core file", "explain", none)
    refused(observer, "No such file", "explain", folder / "missing")
    refused(observer, "cannot be stopped", "explain", core, "--stop")
    refused(observer, "a core file does not change", "stats", core, "--every", "1")
    whole, cut = core.stat().st_size, copied(core, "cut")
    for i in reversed(range(CUTS)):
        os.truncate(cut, whole * i // CUTS + (0 if i else 70))
        refused(observer, "cut off", "explain", cut)
    machine = copied(core, "machine")
    with machine.open("r+b") as file:
        file.seek(18)
        file.write(b"\x03\0")  # e_machine: of 32 bits
    refused(observer, "of another kind of machine", "map", machine)
    version = patched(core, "version", NOTE, NOTE + struct.pack("<I", 78))
    refused(observer, f"the core file has hakmem with description 78, and this program reads {DOOR}", "explain", version)
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    build_id = bytes.fromhex(notes.split("Build ID: ")[1].split()[0])
    refused(observer, "its build ID differs", "explain", patched(core, "build", build_id, bytes(len(build_id))))
    path = str(Path(library).resolve()).encode() + b"\0"
    refused(observer, "No such file", "stats", patched(core, "gone", path, b"/none/" + path[6:]))


def traced(observer, pid):
    with subprocess.Popen(["gdb", "-q", "-batch", "-p", str(pid), "-ex", "shell echo attached", "-ex", "shell cat"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tracer:
        while "attached" not in (line := tracer.stdout.readline()):
            assert line, "gdb attaches to nothing"
        refused(observer, f"process {pid} cannot be stopped: it is another user's, or is being traced", "explain", pid, "--stop")
        tracer.stdin.close()


def other_user(observer, pid, folder):
    mine = Path(folder, "hakmem-observe")
    shutil.copy(observer, mine)
    os.chmod(folder, 0o755)
    run = subprocess.run([mine, "explain", str(pid)], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 1 and run.stderr.count("\n") == 1 and f"process {pid}" in run.stderr, run.stderr


def main():
    observer, program, library = sys.argv[1:]
    require_reading()
    for words in ((), ("explain",), ("explain", "1", "2"), ("cook", "1"), ("explain", "1", "--loud"),
                  ("explain", "1", "--metrics"), ("stats", "1", "--every"), ("stats", "1", "--every", "0"),
                  ("stats", "1", "--every", "1s"), ("stats", "1", "--every", "nan")):
        status, out, error = observe(observer, *words)
        assert status == 1 and out == "" and error.startswith("usage: hakmem-observe explain|stats|map PID|CORE"), error
    processes(observer)
    other_version(observer, library)
    with tempfile.TemporaryDirectory() as folder, load(program, "") as (process, _):
        core = Path(folder, "core")
        core_file.write(process.pid, core)
        core_files(observer, core, library)
        if os.geteuid() == 0:
            other_user(observer, process.pid, folder)
        if shutil.which("gdb"):
            traced(observer, process.pid)
    print("each was refused in one line")
    return 0


if __name__ == "__main__":
    sys.exit(main())
