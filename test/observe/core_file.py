# SPDX-License-Identifier: MIT
"""Core files: the kernel's where it writes them here, and our own of a process that stands still."""
import mmap
import os
import resource
import struct
import subprocess
from pathlib import Path

PAGE = os.sysconf("SC_PAGESIZE")
NT_PRPSINFO, NT_AUXV, NT_FILE = 3, 6, 0x46494C45
PT_LOAD, PT_NOTE = 1, 4
HEAD = "<IIQQQQQQ"  # of a segment: type, flags, offset, address, physical address, bytes in the file and in memory, align
MACHINE = {"x86_64": 62, "aarch64": 183}


def kernel_writes_cores():
    """To the folder of the process, under the name core or core.PID."""
    return Path("/proc/sys/kernel/core_pattern").read_text().strip() in ("core", "core.%p")


def allow_core():
    """For a child that is about to start."""
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def mappings(pid):
    """Start, end, rights, offset and path of each."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(None, 5)
        start, end = (int(part, 16) for part in fields[0].split("-"))
        path = fields[5] if len(fields) > 5 else ""
        if not path.startswith("[v"):
            yield start, end, fields[1], int(fields[2], 16), path


def resident(pagemap, start, end):
    """The runs of pages that are in memory, and whether they are the process's alone: other pages come one by one."""
    words = struct.unpack(f"{(end - start) // PAGE}Q", os.pread(pagemap, (end - start) // PAGE * 8, start // PAGE * 8))
    run = None
    for i, word in enumerate((*words, 0)):
        is_own = word >> 63 and word >> 56 & 1
        if run is not None and not is_own:
            yield start + run * PAGE, start + i * PAGE, 1
        run = None if not is_own else i if run is None else run
        if word >> 63 and not is_own:
            yield start + i * PAGE, start + (i + 1) * PAGE, 0


def note(kind, content):
    padded = content + bytes(-len(content) % 4)
    return struct.pack("<III", 5, len(content), kind) + b"CORE\0\0\0\0" + padded


def notes(pid, all_mappings):
    command = Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")
    about = struct.pack("@bcbbQIIiiii16s80s", 0, b"R", 0, 0, 0, 0, 0, pid, 0, 0, 0, command, b"")
    files = [one for one in all_mappings if one[4].startswith("/")]
    table = struct.pack("<QQ", len(files), PAGE) + b"".join(
        struct.pack("<QQQ", start, end, offset // PAGE) for start, end, _, offset, _ in files)
    names = b"".join(path.encode() + b"\0" for *_, path in files)
    vector = Path(f"/proc/{pid}/auxv").read_bytes()
    return note(NT_PRPSINFO, about) + note(NT_AUXV, vector) + note(NT_FILE, table + names)


def write(pid, path, is_whole=False):
    """As the kernel writes it: of anonymous and written mappings the pages that are there, of files their first page,
    or all of them, too.
    Returns the bytes of pages that were only read: the kernel has one page of zeros for them, and leaves a hole."""
    all_mappings = list(mappings(pid))
    content = notes(pid, all_mappings)
    heads, at, zero_bytes = [], (64 + 56 * (len(all_mappings) + 1) + len(content) + PAGE - 1) // PAGE * PAGE, 0
    memory, pagemap = os.open(f"/proc/{pid}/mem", os.O_RDONLY), os.open(f"/proc/{pid}/pagemap", os.O_RDONLY)
    with open(path, "wb") as file:
        for start, end, rights, offset, name in all_mappings:
            is_file = name.startswith("/") and "w" not in rights and not is_whole
            bytes_there = (PAGE if offset == 0 else 0) if is_file else end - start
            flags = 4 | 2 * ("w" in rights) | ("x" in rights)
            heads.append(struct.pack("<IIQQQQQQ", 1, flags, at, start, 0, bytes_there, end - start, PAGE))
            runs = [(start, start + PAGE, 1)] if is_file and bytes_there else resident(pagemap, start, start + bytes_there)
            for begin, stop, is_own in runs:
                data = os.pread(memory, stop - begin, begin)
                if is_own or name.startswith("/") or data.strip(b"\0"):
                    file.seek(at + begin - start)
                    file.write(data)
                else:
                    zero_bytes += stop - begin
            if not is_file and name.startswith("/"):  # written in part: the rest is the file's
                file.seek(at)
                file.write(os.pread(memory, bytes_there, start))
            at += bytes_there
        file.truncate(at)
        file.seek(0)
        file.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, MACHINE[os.uname().machine], 1, 0, 64, 0, 0,
                                                             64, 56, len(heads) + 1, 0, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 4, 0, 64 + 56 * (len(heads) + 1), 0, 0, len(content), 0, 4))
        file.write(b"".join(heads) + content)
    os.close(memory)
    os.close(pagemap)
    return zero_bytes


def copied(core, name):
    path = core.with_name(name)
    subprocess.run(["cp", "--sparse=always", core, path], check=True)
    return path


def changed(core, name, change):
    """A copy with other segments: change(SEGMENTS, APPEND) edits the list of tuples; APPEND adds bytes and tells where."""
    path = copied(core, name)
    with path.open("r+b") as file:
        def append(data):
            at = (file.seek(0, os.SEEK_END) + PAGE - 1) // PAGE * PAGE
            file.seek(at)
            file.write(data)
            return at
        file.seek(64)
        count = struct.unpack_from("<H", os.pread(file.fileno(), 64, 0), 56)[0]
        segments = [struct.unpack(HEAD, file.read(56)) for _ in range(count)]
        change(segments, append)
        at = append(b"".join(struct.pack(HEAD, *segment) for segment in segments))
        file.seek(32)
        file.write(struct.pack("<Q", at))
        file.seek(56)
        file.write(struct.pack("<H", len(segments)))
    return path


def patched(core, name, find, replace):
    """A copy in which the bytes are others, wherever they are."""
    path = copied(core, name)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = data.find(find)
        assert at >= 0, name
        while at >= 0:
            data[at:at + len(replace)] = replace
            at = data.find(find, at + len(replace))
    return path
