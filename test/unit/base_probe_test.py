#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a tracer reads of the probes: the notes of the library and of a program with the archive, and events.

Usage: probe_test.py FILE... [-- PROGRAM]
Each ELF file must have the two probes, their arguments in registers, at an instruction that does nothing, and a
semaphore each that is zero and writable. PROGRAM (unit_base_probe) is run under bpftrace, where that is allowed.
"""
import os
import re
import shutil
import struct
import subprocess
import sys

WANTED = {("otel_memory", "alloc"): 3, ("otel_memory", "free"): 1}
NOP = {62: b"\x90", 183: b"\x1f\x20\x03\xd5"}  # of x86-64, aarch64
ARGUMENT = {62: re.compile(r"8@%r[a-z0-9]+"), 183: re.compile(r"8@x\d+")}
EVENTS = ["alloc 1230 48 524312", "free 1230"]


class Elf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.machine, = struct.unpack_from("<H", self.bytes, 18)
        headers, = struct.unpack_from("<Q", self.bytes, 40)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 58)
        # name, type, flags, address, offset, size
        self.sections = [struct.unpack_from("<IIQQQQ", self.bytes, headers + i * size) for i in range(count)]
        table = self.sections[names]
        self.names = [self.string(table[4] + section[0]) for section in self.sections]

    def string(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def named(self, name):
        return self.sections[self.names.index(name)]

    def at(self, address, size):
        """Bytes of the file, and whether they are writable in memory."""
        for _, kind, flags, start, offset, length in self.sections:
            if flags & 2 and kind != 8 and start <= address and address + size <= start + length:
                return self.bytes[offset + address - start:][:size], bool(flags & 1)
        raise ValueError(f"{address:#x} is not in the file")

    def probes(self):
        """(location, base, semaphore, provider, name, arguments) of each note."""
        _, _, _, _, at, size = self.named(".note.stapsdt")
        end = at + size
        while at < end:
            owner, length, kind = struct.unpack_from("<III", self.bytes, at)
            if kind != 3 or self.bytes[at + 12:at + 12 + owner] != b"stapsdt\0":
                raise ValueError("another note")
            at += 12 + (owner + 3) // 4 * 4
            words = self.bytes[at + 24:at + length].decode().split("\0")
            yield struct.unpack_from("<QQQ", self.bytes, at) + tuple(words[:3])
            at += (length + 3) // 4 * 4


def faults(path):
    elf, seen = Elf(path), []
    base = elf.named(".stapsdt.base")[3]
    for location, told_base, semaphore, provider, name, arguments in elf.probes():
        seen.append((provider, name))
        words = arguments.split()
        if len(words) != WANTED.get((provider, name)) or not all(ARGUMENT[elf.machine].fullmatch(w) for w in words):
            yield f"{name}: arguments {arguments!r}"
        if elf.at(location, len(NOP[elf.machine]))[0] != NOP[elf.machine]:
            yield f"{name}: another instruction"
        if elf.at(semaphore, 2) != (b"\0\0", True):
            yield f"{name}: no semaphore"
        if told_base != base:
            yield f"{name}: base {told_base:#x}, not {base:#x}"
    if sorted(seen) != sorted(WANTED):
        yield f"probes {seen}"


def events_fault(program):
    """What was wrong with the events of a run, or None; prints why there was none."""
    if shutil.which("bpftrace") is None or os.geteuid() != 0:
        print("no events: needs bpftrace and root")
        return None
    script = (f'usdt:{program}:otel_memory:alloc {{ printf("alloc %x %d %d\\n", arg0, arg1, arg2); }} '
              f'usdt:{program}:otel_memory:free {{ printf("free %x\\n", arg0); }}')
    run = subprocess.run(["bpftrace", "-e", script, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, check=False, timeout=120, env=dict(os.environ, HAKMEM_PROBED="1"))
    if "Attaching" not in run.stdout or "ERROR: Error attaching" in run.stderr or "Could not" in run.stderr:
        print(f"no events: {(run.stderr.strip() or run.stdout.strip()).splitlines()[-1:]}")
        return None
    events = [line for line in run.stdout.splitlines() if line in EVENTS or line.startswith(("alloc ", "free "))]
    if run.returncode != 0 or events != EVENTS or "FAILED" in run.stdout + run.stderr:
        return f"events {events}, status {run.returncode}: {run.stdout}{run.stderr}"
    print(f"{len(events)} events seen by bpftrace")
    return None


def main():
    files = sys.argv[1:]
    program = None
    if "--" in files:
        program = files[-1]
        files = files[:files.index("--")]
    found = [f"{path}: {fault}" for path in files for fault in faults(path)]
    if program is not None:
        fault = events_fault(program)
        found += [f"{program}: {fault}"] if fault else []
    print("\n".join(found) if found else f"{len(files)} files have both probes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
