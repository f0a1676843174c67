#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do `hakmem-observe check` and `ps` name the processes on hakmem, and their libraries?

    check_test.py OBSERVER LIBRARY PROGRAM STATIC

PROGRAM is the load, with the shared library, and STATIC the same with the archive.
Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

import core_file
from observing import load, observe, refused, require_reading

HARDENED = os.environ.get("HAKMEM_FLAVOUR") == "hardened"
OFF = "" if os.environ.get("HAKMEM_FLAVOUR") == "musl" else "force_libc:1"  # musl's malloc has no second name
VERSION = re.search(r"HAK_DOOR_VERSION (\d+)", Path(os.environ["HAKMEM_SOURCE"], "src/door/door.h").read_text())[1]


def check(observer, target):
    status, text, error = observe(observer, "check", target)
    assert status == 0 and error == "", error
    rows = [line.split(": ", 1) for line in text.splitlines()]
    assert [name for name, _ in rows] == ["process", "library", "version", "serves", "not read"], text
    return dict(rows)


def expect(found, process, library):
    assert found["process"] == f"{process.pid} ({Path(process.args[0]).name[:15]})", found
    assert Path(found["library"]).resolve() == Path(library).resolve(), found
    flavour = "hardened" if HARDENED else "default"
    assert re.fullmatch(rf"\d+\.\d+\.\d+, {flavour}, description {VERSION}", found["version"]), found
    assert found["serves"] == "yes" and found["not read"] == "nothing", found


def rows_of(observer):
    """Of the list: the fields of each process, by PID."""
    status, text, error = observe(observer, "ps")
    assert status == 0 and error == "", error
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["PID", "RSS", "KiB", "COMMAND", "HAKMEM", "LIBRARY"]
    sizes = [int(row[1]) for row in rows[1:]]
    assert sizes == sorted(sizes, reverse=True), sizes
    return {int(row[0]): row for row in rows[1:]}


def main():
    observer, library, program, static = sys.argv[1:]
    require_reading()
    assert observe(observer, "ps", "all")[2].startswith("usage: ")
    assert observe(observer, "check")[2].startswith("usage: ")
    refused(observer, "there is no process 2147483647", "check", 2147483647)
    with load(program, "") as (one, _), load(static, "") as (other, _), load(program, OFF) as (off, _):
        expect(check(observer, one.pid), one, library)
        expect(check(observer, other.pid), other, static)
        assert check(observer, off.pid)["serves"].startswith("no, force_libc is on") == (OFF != "")
        rows = rows_of(observer)
        for process, path in ((one, library), (other, static)):
            row = rows[process.pid]
            assert row[2] == Path(process.args[0]).name[:15] and Path(row[4]).resolve() == Path(path).resolve(), row
            assert row[3].endswith("+h") == HARDENED, row
        with tempfile.TemporaryDirectory() as folder:
            core = Path(folder, "core")
            core_file.write(one.pid, core)
            expect(check(observer, core), one, library)
    assert one.pid not in rows_of(observer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
