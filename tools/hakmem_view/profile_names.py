# SPDX-License-Identifier: MIT
"""Names for the stacks of a profile: function, file and line, and which frame of a stack a reader wants to see first."""
from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Optional

from . import perf_map, symbols
from .process import plain
from .profile_model import Profile, Site
from .symbols import Frame

ALLOCATES = re.compile(  # what only passes a wish for memory on, in C, C++, Rust, Python and GLib
    r"(?:hak_|_?_?libc_)?(?:malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc)"
    r"|x(?:malloc|calloc|realloc|strdup|strndup)|_?_?(?:strdup|strndup|asprintf|vasprintf)|_Zn[wa]\w+|hak_alloc_at"
    r"|__alloc_token_\w+|(?:z|ztry|je_|mi_)(?:malloc|calloc|realloc)(?:_usable)?\w*"
    r"|g_(?:malloc|realloc|try_malloc|slice_alloc)\w*|_?Py(?:Mem|Object)_(?:Raw|Debug)*(?:Malloc|Calloc|Realloc)\w*"
    r"|__rust_\w+|__rdl_\w+|__rg_\w+|.*\boperator new(?:\[\])?")
LIBRARIES = ("std::", "__gnu_cxx::", "boost::container::", "alloc::", "core::", "hashbrown::", "__rustc", "<alloc::", "<core::",
             "<std::", "<hashbrown::")
RUST_LIBRARY = re.compile(r"<(?:[^:<>]*|[&*]?(?:dyn |mut )?(?:alloc|core|std|hashbrown)::.*) as (?:alloc|core|std)::")  # a type that is nobody's
STARTS = {"_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread",
          "__clone3", "clone3", "clone"}
UNKNOWN = Frame("", "", 0, False)


@lru_cache(maxsize=65536)
def is_plumbing(function: str) -> bool:
    """Whether it serves its caller's wish: an allocation function, or a container of a standard library."""
    name = short(function)
    return name.startswith(LIBRARIES) or RUST_LIBRARY.match(name) is not None or \
        ALLOCATES.fullmatch(name.partition("@")[0]) is not None


OPERATOR = re.compile(r"\boperator ?(<=>|<<=?|>>=?|<=?|>=?|->\*?|\(\)|\[\]|new(?:\[\])?|delete(?:\[\])?)")
NOWHERE = "(anonymous namespace)"
BRACES = str.maketrans("<>()[] ", "\1\2\3\4\5\6\7")


@lru_cache(maxsize=65536)
def short(function: str) -> str:
    """Without its arguments, those of templates, and its result: what people call it by. Names of Rust and Python stay
    whole."""
    if function.startswith("<") or ".<" in function or "{{" in function:
        return re.sub(r"::h[0-9a-f]{16}$", "", function)
    text = OPERATOR.sub(lambda one: f"operator{' ' * one[1][0].isalpha()}{one[1]}".translate(BRACES),
                        function.replace(NOWHERE, NOWHERE.translate(BRACES)))
    found, depth = [], 0
    for letter in text:
        depth += letter in "<(["
        if not depth:
            found.append(letter)
        depth -= letter in ">)]" and depth > 0
    text = re.sub(r"(?: const)?(?: \[clone.*)?$", "", "".join(found).strip()).rpartition(" ")[2].replace("::::", "::")
    text = re.sub(r"::h[0-9a-f]{16}$|(?:\.(?:constprop|part|isra|cold|lto_priv|llvm)(?:\.\d+)?)+$", "", text.removesuffix("::"))
    return text.translate({ord(new): old for old, new in zip("<>()[] ", "\1\2\3\4\5\6\7")}) or function


class Named:
    """A profile whose addresses have names."""

    def __init__(self, profile: Profile, pid: int = 0, known: Optional[Named] = None, has_symbols: bool = True):
        """`pid`: of the process if it still lives; `known`: names of an older profile of the same process."""
        self.profile = profile
        self.frames: dict[int, list[Frame]] = dict(known.frames) if known and known.profile.mappings == profile.mappings else {}
        labels = {address + 1 for site in profile.sites if (address := label_address(site.label))}
        left = (profile.addresses | labels) - self.frames.keys()
        left -= self._find_code(left, pid if has_symbols else 0)
        if left and has_symbols:
            self.frames.update(symbols.names(left, profile.mappings, pid))

    def _find_code(self, left: set[int], pid: int) -> set[int]:
        """Which lie in functions that were made at run time."""
        found = {address: self.profile.code[address] for address in left & self.profile.code.keys()}
        apart = [address for address in left - found.keys() if self.profile.mapping(address) is None]
        if apart and pid:
            found.update(perf_map.names(perf_map.of_process(pid), apart, pid))
        self.frames.update((address, [frame]) for address, frame in found.items())
        return set(found)

    def code(self) -> dict[int, Frame]:
        """Functions that were made at run time, by address: nothing else will know them once the process has ended."""
        return {address: frames[0] for address, frames in self.frames.items()
                if frames[0].function and self.profile.mapping(address) is None}

    def of(self, address: int) -> list[Frame]:
        """The frames at an address, innermost first; where none is known its place in the file stands for it."""
        known = self.frames.get(address) or [UNKNOWN]
        return [self._named(frame, address) for frame in known]

    def _named(self, frame: Frame, address: int) -> Frame:
        if frame.function:
            return replace(frame, function=plain(frame.function), file=plain(frame.file))
        where = self.profile.mapping(address)
        name = f"{where.name}+{address - where.start + where.offset:#x}" if where and where.name else f"{address:#x}"
        return Frame(plain(name), plain(frame.file), frame.line, frame.is_inlined)

    def module(self, address: int) -> str:
        where = self.profile.mapping(address)
        return plain(where.name) if where else "python" if self.of(address)[0].is_python else ""

    def addresses(self, site: Site) -> list[int]:
        """Of its stack. Where functions of Python are known, the interpreter that runs them is left out."""
        if not any(self.of(address)[0].is_python for address in site.stack):
            return list(site.stack)
        wheres = ((address, self.profile.mapping(address)) for address in site.stack)
        return [address for address, where in wheres if not where or not perf_map.is_interpreter(where.name, where.path)]

    def _label(self, label: str) -> Frame:
        """The name of what a label points to, if it is an address of the program; else a compiler's number of a type."""
        address = label_address(label)
        if not address:
            return Frame(plain(label), "", 0, False)
        if self.profile.mapping(address + 1) is None:
            return Frame(f"type {label}", "", 0, False)
        known = self.frames.get(address + 1, [UNKNOWN])[-1]
        return Frame(f"site {plain(known.function or label)}", plain(known.file), known.line, False)

    def stack(self, site: Site) -> list[tuple[Frame, str]]:
        """All frames, innermost first, each with its module; a label of the program's own stands innermost."""
        found = [(frame, self.module(address)) for address in self.addresses(site) for frame in self.of(address)]
        if site.label:
            found.insert(0, (self._label(site.label), ""))
        return found or [(Frame("no stack", "", 0, False), "")]

    def callers(self, site: Site) -> list[tuple[Frame, str]]:
        """From the first frame that is the program's own outwards, without the start of the process."""
        whole = self.stack(site)[bool(site.label and site.stack):]
        own = [at for at, (frame, _) in enumerate(whole) if not _is_start(frame)]
        found = whole[_first(whole, own):]
        while len(found) > 1 and _is_start(found[-1][0]):
            found.pop()
        return found

    def where(self, site: Site) -> str:
        """One line: the function that allocates, at its line, and its label."""
        frame = self.callers(site)[0][0]
        label = f" ({self._label(site.label).function})" if site.label and site.stack else ""
        return short(frame.function) + at_line(frame) + label

    def chain(self, site: Site, most: int = 3) -> str:
        """Who called it, a few functions far."""
        names = [short(frame.function) for frame, _ in self.callers(site)[1:] if not _is_aside(frame)]
        return " < ".join(names[:most])


def _first(whole: list[tuple[Frame, str]], own: list[int]) -> int:
    """Where the program's own begins. A module of Python without debug data is passed over: its caller has a line."""
    found = [at for at in own if not _is_aside(whole[at][0])]
    if not found:
        return own[-1] if own else 0
    python = next((at for at in found if whole[at][0].is_python), found[0])
    return next((at for at in found if at >= python or whole[at][0].line), found[0])


def _is_aside(frame: Frame) -> bool:
    """Whether it serves its caller's wish."""
    return perf_map.is_library(frame) if frame.is_python else is_plumbing(frame.function)


def _is_start(frame: Frame) -> bool:
    """With the version that the C library's symbols have."""
    return not frame.is_python and frame.function.partition("@")[0] in STARTS


def label_address(label: str) -> int:
    """0 if it is none."""
    return int(label, 16) if re.fullmatch(r"0x[0-9a-f]{1,15}", label) else 0


def at_line(frame: Frame) -> str:
    if not frame.file:
        return ""
    return f" at {PurePosixPath(frame.file).name}:{frame.line}" if frame.line else f" in {PurePosixPath(frame.file).name}"


__all__ = ["Frame", "Named", "at_line", "is_plumbing", "short"]
