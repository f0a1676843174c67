# SPDX-License-Identifier: MIT
"""As much of ELF files (64 bits, little endian) as names need: segments, symbols, build id, and where debug data lies.

A file that is cut, wrong or of another kind has none of it; nothing here raises for its content.
"""
from __future__ import annotations

import mmap
import os
import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Iterator, Optional

LOAD, DYNSYM, SYMTAB, NOTE, NOBITS = 1, 11, 2, 7, 8
NEEDED, SONAME, FILTER = 1, 14, 0x7fffffff  # of the dynamic section
FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
BUILD_ID = 3
MOST_SYMBOLS = 4_000_000
MOST_BYTES = 1 << 20  # of names and notes: the file may be anybody's
MOST_LETTERS = 256  # of a name


def _string(text: bytes, at: int) -> bytes:
    """b"" where none ends."""
    end = text.find(b"\0", at, at + MOST_LETTERS)
    return text[at:end] if end >= 0 else b""


@dataclass(frozen=True)
class Section:
    name: bytes
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Symbol:
    name: str
    value: int
    size: int
    is_function: bool


class Elf:
    def __init__(self, data):
        """`data`: bytes, or what behaves like them."""
        self.data = data

    @classmethod
    def open(cls, path: str) -> Optional[Elf]:
        """None if there is no such file, or none of this kind."""
        try:
            with open(path, "rb") as file:
                if not os.path.isfile(path) or os.fstat(file.fileno()).st_size < 64:
                    return None
                found = cls(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        except (OSError, ValueError):
            return None
        return found if found.data[:6] == b"\x7fELF\x02\x01" else None

    @cached_property
    def segments(self) -> list[tuple[int, int, int]]:
        """File offset, address, and bytes in the file of what is loaded."""
        try:
            start, = struct.unpack_from("<Q", self.data, 32)
            size, count = struct.unpack_from("<HH", self.data, 54)
            rows = [struct.unpack_from("<IIQQQQ", self.data, start + at * size) for at in range(count)]
        except (struct.error, OverflowError):
            return []
        return [(offset, address, length) for kind, _, offset, address, _, length in rows if kind == LOAD]

    def address(self, offset: int) -> int:
        """Where a byte of the file is loaded, before the whole is moved."""
        for begin, address, length in self.segments:
            if begin <= offset < begin + length:
                return offset - begin + address
        return offset

    def offset(self, address: int) -> int:
        """The place in the file of what is loaded there; -1: nothing of it is."""
        return next((address - first + begin for begin, first, length in self.segments if first <= address < first + length), -1)

    @cached_property
    def begin(self) -> int:
        """The address of the file's first byte."""
        return next((address - offset for offset, address, _ in self.segments if offset < 4096), 0)

    @cached_property
    def sections(self) -> list[Section]:
        try:
            start, = struct.unpack_from("<Q", self.data, 40)
            size, count, names = struct.unpack_from("<HHH", self.data, 58)
            rows = [struct.unpack_from("<IIQQQQI", self.data, start + at * size) for at in range(count)]
            text = self.data[rows[names][4]:rows[names][4] + min(rows[names][5], MOST_BYTES)] if names < len(rows) else b""
        except (struct.error, OverflowError):
            return []
        return [Section(_string(text, row[0]), row[1], row[4], row[5], row[6]) for row in rows]

    def content(self, name: bytes) -> bytes:
        return next((self.bytes_of(one) for one in self.sections if one.name == name and one.kind != NOBITS), b"")

    def bytes_of(self, section: Section) -> bytes:
        return self.data[section.offset:section.offset + section.size]

    def has(self, name: bytes) -> bool:
        return any(one.name == name and one.kind != NOBITS and one.size for one in self.sections)

    def symbols(self) -> Iterator[Symbol]:
        """Those that are defined here: of the full table if there is one, and of the dynamic one."""
        for kind in (SYMTAB, DYNSYM):
            for section in (one for one in self.sections if one.kind == kind and one.link < len(self.sections)):
                text = self.bytes_of(self.sections[section.link])
                table = self.bytes_of(section)[:24 * MOST_SYMBOLS]
                for name, info, _, where, value, size in struct.iter_unpack("<IBBHQQ", table[:len(table) // 24 * 24]):
                    if where and name:
                        yield Symbol(text[name:text.find(b"\0", name)].decode("utf-8", "replace"), value, size,
                                     info & 15 in FUNCTIONS)

    def names(self, wanted: re.Pattern[bytes]) -> tuple[set[str], set[str]]:
        """Of the dynamic symbols that match: those that are taken from elsewhere, and those that are defined here."""
        taken: set[str] = set()
        defined: set[str] = set()
        for section in (one for one in self.sections if one.kind == DYNSYM and one.link < len(self.sections)):
            text = self.bytes_of(self.sections[section.link])
            if wanted.search(text) is None:  # of most files
                continue
            table = self.bytes_of(section)[:24 * MOST_SYMBOLS]
            for at, _, _, where, _, _ in struct.iter_unpack("<IBBHQQ", table[:len(table) // 24 * 24]):
                name = _string(text, at)
                if name and wanted.fullmatch(name):
                    (defined if where else taken).add(name.decode("ascii", "replace"))
        return taken, defined

    def note_at(self, owner: bytes, wanted: int) -> tuple[int, int]:
        """Where the content of a note lies in the file, and its bytes; (0, 0) if there is none."""
        for section in (one for one in self.sections if one.kind == NOTE):
            data, at = self.bytes_of(section)[:MOST_BYTES], 0
            while at + 12 <= len(data):
                name, length, kind = struct.unpack_from("<III", data, at)
                begin = at + 12 + (name + 3) // 4 * 4
                if kind == wanted and data[at + 12:at + 12 + name] == owner:
                    return section.offset + begin, length
                at = begin + (length + 3) // 4 * 4
        return 0, 0

    def note(self, owner: bytes, wanted: int) -> bytes:
        """The content of a note; b"" if there is none."""
        at, length = self.note_at(owner, wanted)
        return self.data[at:at + length]

    @cached_property
    def build_id(self) -> str:
        return self.note(b"GNU\0", BUILD_ID).hex()

    def _dynamic(self, wanted: int) -> list[str]:
        text, table = self.content(b".dynstr"), self.content(b".dynamic")[:MOST_BYTES]
        return [_string(text, at).decode("utf-8", "replace")
                for kind, at in struct.iter_unpack("<QQ", table[:len(table) // 16 * 16]) if kind == wanted]

    @cached_property
    def needed(self) -> list[str]:
        """The libraries that it is linked with, by the names they state."""
        return self._dynamic(FILTER) + self._dynamic(NEEDED)

    @cached_property
    def soname(self) -> str:
        """The name that others are linked with it by; "" for none."""
        return next(iter(self._dynamic(SONAME)), "")

    @cached_property
    def debug_link(self) -> str:
        """The name of the file that its debug data was moved to; "" for none."""
        return self.content(b".gnu_debuglink").partition(b"\0")[0].decode("utf-8", "replace")
