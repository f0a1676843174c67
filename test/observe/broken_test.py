#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a core file may choose: notes, names, sizes and addresses. Does the observer bear it?

    broken_test.py OBSERVER PROGRAM LIBRARY

OBSERVER is compiled with AddressSanitizer and UBSan, PROGRAM is the load.
"""
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import core_file
from core_file import NT_FILE, PT_LOAD, PT_NOTE
from observing import document, load, observe, refused, require_reading


def two_notes(observer, core):
    """The second list of files is shorter than the first."""
    def change(segments, append):
        notes = core_file.note(NT_FILE, struct.pack("<QQQQQ", 1, 4096, 1 << 40, (1 << 40) + 4096, 0) + b"/none\0")
        kind, flags, _, *rest = segments[0]
        assert kind == PT_NOTE
        segments.append((PT_NOTE, flags, append(notes), 0, 0, len(notes), 0, 4))
    broken = core_file.changed(core, "two_notes", change)
    assert document(observer, "map", broken) == document(observer, "map", core)


def no_heads(observer, core):
    """No first pages of files, so no build IDs: a library that was built again must not pass for the one that was mapped."""
    def change(segments, _):
        for i, (kind, flags, at, start, physical, size, *rest) in enumerate(segments):
            segments[i] = (kind, flags, at, start, physical, 0 if kind == PT_LOAD and size == core_file.PAGE else size, *rest)
    refused(observer, "its build ID differs, or is not known", "explain", core_file.changed(core, "no_heads", change))


def odd_files(observer, core, library):
    """Names that the core file has for the library: only a regular file at an absolute path is opened."""
    path = str(Path(library).resolve()).encode() + b"\0"
    fifo = core.with_name("fifo")
    os.mkfifo(fifo)
    for name, text in ((bytes(fifo), "not a regular file"), (b"/dev/zero", "not a regular file"),
                       (path[1:-1], "not an absolute path"), (b"", "not an absolute path")):
        broken = core_file.patched(core, "odd", path, name + b"\0")
        refused(observer, text, "explain", broken)


def odd_texts(observer, core, library, folder):
    """Names and versions that a terminal or JSON would take for something else."""
    path = str(Path(library).resolve()).encode() + b"\0"
    broken = core_file.patched(core, "odd", path, b"/none/\x1b]0;\"\\ \x9b\n\0")
    refused(observer, "needs /none/?]0;?? ??: No such file", "explain", broken)
    data, changed = bytearray(Path(library).resolve().read_bytes()), Path(folder, "libhakmem.so")
    name = document(observer, "stats", core)["hakmem"].encode().ljust(20, b"\0")  # src/door/door.h
    at = data.find(name)
    while at >= 0:
        whole, rows, text = struct.unpack_from("<III", data, at - 12)
        if whole == 32 + rows * 8 + text:
            data[at:at + 20] = b'0.1"\\\x1b]0;a\x07\n\xff'.ljust(20, b"\0")
        at = data.find(name, at + 1)
    changed.write_bytes(data)
    command = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": str(changed)}) as process:
        process.stdout.readline()
        assert document(observer, "stats", process.pid)["hakmem"] == "0.1???]0;a???"
        status, text, error = observe(observer, "explain", process.pid)
        assert status == 0 and text.startswith("hakmem: 0.1???]0;a???, process "), (text[:100], error)
        process.kill()


def odd_segments(observer, core):
    """Segments that share bytes of the file, that reach where no program has memory, and the kernel's."""
    def shared(segments, _):
        kind, flags, at, _, physical, size, _, align = max(segments, key=lambda segment: segment[5])
        segments.extend((kind, flags, at, (1 << 48) + i * size, physical, size, size, align) for i in range(4))

    def high(segments, _):
        segments.append((PT_LOAD, 4, 0, (1 << 57) - core_file.PAGE, 0, 0, 2 * core_file.PAGE, core_file.PAGE))

    def kernel(segments, _):
        segments.append((PT_LOAD, 4, 0, 1 << 58, 0, 1 << 58, 1 << 58, core_file.PAGE))

    for change in (shared, high):
        refused(observer, "the core file contradicts itself", "explain", core_file.changed(core, "odd", change))
    assert document(observer, "map", core_file.changed(core, "odd", kernel)) == document(observer, "map", core)


def other_pages(observer, pid, folder):
    """Of a machine with larger OS pages: the list of files tells."""
    whole = Path(folder, "whole")
    core_file.write(pid, whole, is_whole=True)
    head = struct.pack("<I", NT_FILE) + b"CORE\0\0\0\0"
    data = whole.read_bytes()[:1 << 20]
    count = data[data.index(head) + len(head):][:8]
    before, after = (head + count + struct.pack("<Q", page) for page in (core_file.PAGE, 1 << 16))
    other = core_file.patched(whole, "other", before, after)
    here, there = (document(observer, "stats", path)["bytes"]["guard"] for path in (whole, other))
    assert here != 0 and there == here // core_file.PAGE << 16, (here, there)


def devices(observer, library):
    """A library in a mapping of shared memory is data: no file of a program, nor read."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(Path(library).resolve().read_bytes())
        file.flush()
        script = ("import mmap, os, sys, time; m = mmap.mmap(os.open(sys.argv[1], 0), 0, prot=mmap.PROT_READ); "
                  "print(len(m), flush=True); time.sleep(600)")
        with subprocess.Popen([sys.executable, "-c", script, file.name], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline()
            refused(observer, "the process does not use hakmem", "explain", process.pid)
            process.kill()


def main():
    observer, program, library = sys.argv[1:]
    require_reading()
    with tempfile.TemporaryDirectory() as folder, load(program, "guard_rate:100") as (process, _):
        core = Path(folder, "core")
        core_file.write(process.pid, core)
        two_notes(observer, core)
        no_heads(observer, core)
        odd_files(observer, core, library)
        odd_texts(observer, core, library, folder)
        odd_segments(observer, core)
        other_pages(observer, process.pid, folder)
    devices(observer, library)
    print("all were borne")
    return 0


if __name__ == "__main__":
    sys.exit(main())
