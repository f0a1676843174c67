# SPDX-License-Identifier: MIT
"""Wakes the control channel of a process that was started without it: a request in the library's exported object
`hak_attach`, written through /proc/PID/mem. That takes the rights of a debugger, passes read-only pages as a breakpoint
does, and stops nothing."""
from __future__ import annotations

import errno
import os
import struct
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import process
from .elf import Elf
from .errors import ViewError
from .installed import NAME

SYMBOL = "hak_attach"
MAGIC, VERSION = b"HAKATTCH", 2
LAYOUT = struct.Struct("<8sIIQQQQ")  # magic, version, size, command, argument, number, address of the answer
COMMAND, ARGUMENT, NUMBER = 16, 24, 32  # offsets
RESULT = struct.Struct("<QQ")  # result, number of the request
OPEN, PROFILE = 1, 2  # commands: open the control channel; and start sampling, too
FAILED = 1 << 63
REFUSALS = {errno.EPERM: "it is set-uid, runs on the C library's malloc, or has no memory for it",
            errno.EBUSY: "its option control serves at another name"}
CONTROL = "HAKMEM_OPTIONS=control:@hakmem-%p"  # answers always
SECONDS = 5.0  # for the process to look at the word: it does in its slow paths


@dataclass(frozen=True)
class Place:
    """A file that a process has mapped from its beginning on."""

    begin: int
    path: str
    key: str  # of /proc/PID/map_files


def _places(pid: int) -> list[Place]:
    found = []
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        program = os.readlink(f"/proc/{pid}/exe")
    except PermissionError as error:
        raise _forbidden(pid) from error
    except OSError as error:
        raise ViewError(f"there is no process {pid}" if not process.lives(pid) else
                        f"{process.called(pid)} cannot be looked into: {error.strerror}") from error
    for line in lines:
        words = line.split(maxsplit=5)
        if len(words) == 6 and int(words[2], 16) == 0 and (process.LIBRARY in words[5] or words[5] == program):
            found.append(Place(int(words[0].partition("-")[0], 16), words[5], words[0]))
    return sorted(found, key=lambda place: process.LIBRARY not in place.path)


def _forbidden(pid: int) -> ViewError:
    return ViewError(f"no permission to attach to {process.called(pid)}: it takes the rights of a debugger "
                     f"({process.user(process.owner(pid))} or root; kernel.yama.ptrace_scope may allow root alone)")


def _value(pid: int, place: Place) -> Optional[int]:
    """Of the file as it is mapped, even if another has its name by now."""
    for path in (f"/proc/{pid}/map_files/{place.key}", process.rooted(pid, place.path)):
        found = symbol_value(path)
        if found is not None:
            return found
    return None


def symbol_value(path: str) -> Optional[int]:
    """The address of the library's object relative to where the file's first byte is loaded; None if it has none."""
    file = Elf.open(path)
    if file is None:
        return None
    return next((one.value - file.begin for one in file.symbols() if one.name == SYMBOL), None)


class Memory:
    """Of another process."""

    def __init__(self, pid: int):
        self.pid = pid
        try:
            self.file = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except PermissionError as error:
            raise _forbidden(pid) from error
        except OSError as error:
            raise ViewError(f"cannot attach to {process.called(pid)}: {error.strerror}") from error

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_) -> None:
        os.close(self.file)

    def read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self.file, size, address)
        except (OSError, OverflowError):
            return b""

    def write(self, address: int, value: int) -> None:
        """Eight bytes at once."""
        try:
            if os.pwrite(self.file, struct.pack("<Q", value), address) == 8:
                return
        except PermissionError as error:
            raise _forbidden(self.pid) from error
        except OSError:
            pass
        raise ViewError(f"cannot write to the memory of {process.called(self.pid)}")


def _object(pid: int, memory: Memory) -> int:
    """The address of the library's object."""
    places = _places(pid)
    for place in places:
        value = _value(pid, place)
        if value is None:
            continue
        address = place.begin + value
        found = memory.read(address, LAYOUT.size)
        if len(found) < LAYOUT.size or found[:8] != MAGIC:
            continue
        version = LAYOUT.unpack(found)[1]
        if version != VERSION:
            raise ViewError(f"{process.called(pid)} runs on another version of hakmem (it attaches by version {version}, this "
                            f"tool by version {VERSION}); use the {NAME} of that version")
        return address
    if any(process.LIBRARY in place.path for place in places):
        raise ViewError(f"{process.called(pid)} runs on a hakmem that is too old to attach to; start it with "
                        f"{CONTROL} in its environment")
    raise ViewError(f"{process.called(pid)} does not run on hakmem, as far as one can see; start it with {NAME} run")


def _spare_filtered(pid: int) -> None:
    """To open the channel takes system calls that a sandboxed process never made before. Where it is open it takes none."""
    if process.is_filtered(pid) and not any("hakmem" in address for address in process.listening(pid)):
        raise ViewError(f"{process.called(pid)} has a seccomp filter, which may kill it for the system calls by which it would "
                        f"open its control channel: it is left alone; start it with {CONTROL}")


def is_possible(pid: int) -> bool:
    """Whether the process has the object, as far as we may look: its program may have the library within itself."""
    try:
        return any(_value(pid, place) is not None for place in _places(pid))
    except ViewError:
        return False


def wake(pid: int, rate: int = 0, seconds: float = SECONDS) -> None:
    """Opens the control channel of a process, and starts sampling at a rate if one is given. The process does it when
    it next leaves its hit path: one that sleeps does nothing, one with a filter of system calls is not asked."""
    with Memory(pid) as memory:
        address = _object(pid, memory)
        _spare_filtered(pid)
        _, _, _, _, _, number, answer = LAYOUT.unpack(memory.read(address, LAYOUT.size))
        number = (number + 1) % (1 << 64)
        memory.write(address + ARGUMENT, rate)
        memory.write(address + COMMAND, PROFILE if rate else OPEN)
        memory.write(address + NUMBER, number)
        until, states = time.monotonic() + seconds, Counter()
        while time.monotonic() < until:
            found = memory.read(answer, RESULT.size)
            if len(found) < RESULT.size:
                raise ViewError(f"process {pid} has ended")
            result, answered = RESULT.unpack(found)
            if answered == number:
                if result & FAILED:
                    raise ViewError(f"{process.called(pid)} could not open its control channel: "
                                    f"{REFUSALS.get(result & 0xFFFF) or os.strerror(result & 0xFFFF)}")
                return
            states[process.state(pid)] += 1
            time.sleep(0.02)
    raise ViewError(f"{process.called(pid)} has not answered within {seconds:.0f} s: {_why_silent(pid, states)}")


def _why_silent(pid: int, states: Counter[str]) -> str:
    """And what to do. The request stays. `states`: of the process, as often as seen."""
    state = states.most_common(1)[0][0] if states else ""
    if state in ("S", "D"):
        return ("all its threads sleep, and it answers when one of them next allocates or frees: give it some work and ask "
                f"again. A program that was started with {CONTROL} answers also while it sleeps")
    if state in ("T", "t"):
        return f"it is stopped, by a signal or a debugger; let it go on (kill -CONT {pid}) and ask again"
    if state in ("Z", "X"):
        return f"its first thread has ended, and no other can open the channel; start the program with {CONTROL}"
    return "it runs, but its threads' caches have served all that they allocated since; ask again"
