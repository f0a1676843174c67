#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a core file may choose: notes, names, sizes and addresses. Does the observer bear it?

    broken_test.py OBSERVER PROGRAM LIBRARY

OBSERVER is compiled with AddressSanitizer and UBSan, PROGRAM is the load.
"""
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


def main():
    observer, program, library = sys.argv[1:]
    require_reading()
    with tempfile.TemporaryDirectory() as folder, load(program, "guard_rate:100") as (process, _):
        core = Path(folder, "core")
        core_file.write(process.pid, core)
        two_notes(observer, core)
    print("all were borne")
    return 0


if __name__ == "__main__":
    sys.exit(main())
