# SPDX-License-Identifier: MIT
"""Names for the stacks of a profile: function, file and line, and which frame of a stack a reader wants to see first."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Iterable, Optional

from . import interpreter, perf_map, symbols
from .process import plain, thread_names
from .profile_model import Profile, Site
from .symbols import Frame

ALLOCATES = re.compile(  # what only passes a wish for memory on, in C, C++, Rust, Python, Perl and GLib
    r"(?:hak_|_?_?libc_)?(?:malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc)"
    r"|x(?:malloc|calloc|realloc|strdup|strndup)|_?_?(?:strdup|strndup|asprintf|vasprintf)|_Zn[wa]\w+|hak_alloc_at"
    r"|__alloc_token_\w+|(?:z|ztry|je_|mi_)(?:malloc|calloc|realloc)(?:_usable)?\w*"
    r"|g_(?:malloc|realloc|try_malloc|slice_alloc)\w*|_?Py(?:Mem|Object)_(?:Raw|Debug)*(?:Malloc|Calloc|Realloc)\w*"
    r"|Perl_safesys(?:malloc|calloc|realloc)|__rust_\w+|__rdl_\w+|__rg_\w+|.*\boperator new(?:\[\])?")
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
ADDED = re.compile(  # to a name, by compilers and by those that move functions
    r"::h[0-9a-f]{16}$|(?:\.(?:constprop|part|isra|cold|warm|localalias|lto_priv|llvm|__uniq)(?:\.\d+)?)+(?:/\d+)?$|(?<=\w)/\d+$")
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
    text = ADDED.sub("", text.removesuffix("::"))
    return text.translate({ord(new): old for old, new in zip("<>()[] ", "\1\2\3\4\5\6\7")}) or function


@dataclass(frozen=True)
class Choice:
    """Which sites are looked at, by functions or files of their stacks, and which functions are left out of stacks."""

    focus: Optional[re.Pattern] = None
    ignore: Optional[re.Pattern] = None
    hide: Optional[re.Pattern] = None
    suppressed: tuple[re.Pattern, ...] = ()  # leaks that are known


ALL = Choice()


def suppressions(text: str) -> tuple[re.Pattern, ...]:
    """Of LSan's file: lines leak:PATTERN, which match a part of the name of a function, file or module; ^ $ and * are special."""
    found = []
    for line in map(str.strip, text.splitlines()):
        kind, _, pattern = line.partition(":")
        if kind == "leak" and pattern:
            begin, end = "^" * pattern.startswith("^"), "$" * pattern.endswith("$")
            inner = pattern[len(begin):len(pattern) - len(end)]
            found.append(re.compile(begin + ".*".join(map(re.escape, inner.split("*"))) + end))
    return tuple(found)


class Named:
    """A profile whose addresses have names."""

    def __init__(self, profile: Profile, pid: int = 0, known: Optional[Named] = None, has_symbols: bool = True,
                 choice: Choice = ALL):
        """`pid`: of the process if it still lives; `known`: names of an older profile of the same process."""
        self.profile, self.choice = profile, known.choice if known else choice
        self.threads = {**profile.threads, **(thread_names(pid) if pid else {})}
        self.frames: dict[int, list[Frame]] = dict(known.frames) if known and known.profile.mappings == profile.mappings else {}
        self.pid, self.has_symbols = pid if has_symbols else 0, has_symbols
        self.shown: dict[tuple[int, ...], list[int]] = {}  # of stacks
        self.learn(profile.sites)

    def learn(self, sites: Iterable[Site]) -> None:
        """The names that stacks and labels of these need."""
        self.shown.clear()
        left = {address for site in sites for address in site.stack}
        left.update(address + 1 for site in sites if (address := label_address(site.label)))
        left -= self.frames.keys()
        left -= self._find_code(left, self.pid)
        if left and self.has_symbols:
            self.frames.update(symbols.names(left, self.profile.mappings, self.pid))

    @cached_property
    def sites(self) -> list[Site]:
        """Those that are looked at."""
        return [site for site in self.profile.sites if self.shows(site)]

    def shows(self, site: Site) -> bool:
        def has(pattern: re.Pattern) -> bool:
            return any(pattern.search(frame.function) or pattern.search(frame.file) for frame, _ in self.stack(site))
        focus, ignore = self.choice.focus, self.choice.ignore
        return (focus is None or has(focus)) and not (ignore is not None and has(ignore))

    def is_suppressed(self, site: Site) -> bool:
        return any(pattern.search(text) for pattern in self.choice.suppressed for frame, module in self.stack(site)
                   for text in (frame.function, frame.file, module))

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
        """The frames at an address, innermost first; where none is known its place in the file stands for it. In an interpreter
        one: the innermost that tells what was made, else the function itself, without what is inlined there."""
        known = self.frames.get(address) or [UNKNOWN]
        if len(known) > 1 and self.interpreters and self._is_interpreter(address):
            known = [next(filter(_tells, known), known[-1])]
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
        """Of its stack. Where functions of Python are known, the interpreter that runs them is left out; else one of its own
        stands for all."""
        if site.stack not in self.shown:
            if not self.interpreters:
                self.shown[site.stack] = list(site.stack)
            elif any(self.of(address)[0].is_python for address in site.stack):
                self.shown[site.stack] = [address for address in site.stack if not self._is_interpreter(address)]
            else:
                self.shown[site.stack] = interpreter.folded(site.stack, self._is_interpreter, self._tells, self._is_aside)
        return self.shown[site.stack]

    @cached_property
    def interpreters(self) -> set[int]:
        """Where files of CPython are mapped."""
        return {one.start for one in self.profile.mappings if perf_map.is_interpreter(one.name, one.path)}

    def _is_interpreter(self, address: int) -> bool:
        where = self.profile.mapping(address)
        return where is not None and where.start in self.interpreters

    def _is_aside(self, address: int) -> bool:
        return all(map(is_aside, self.of(address)))

    def _tells(self, address: int) -> bool:
        """Whether a function of the interpreter says what was made."""
        return any(map(_tells, self.frames.get(address, ())))

    @cached_property
    def folds(self) -> int:
        """Sites whose stacks lack functions of the interpreter, although none of Python is known in them."""
        return sum(len(self.addresses(site)) < len(site.stack) and not any(self.of(address)[0].is_python for address in site.stack)
                   for site in self.sites) if self.interpreters else 0

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
        if self.choice.hide is not None:
            shown = [one for one in found if not self.choice.hide.search(one[0].function)]
            found = shown or [(Frame("hidden", "", 0, False), "")] * bool(found)
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

    def own(self, site: Site) -> list[Frame]:
        """The program's own functions, without those that only pass a wish on; the innermost is where it allocates."""
        first, *others = (frame for frame, _ in self.callers(site))
        return [first, *(frame for frame in others if not is_aside(frame))]

    def label(self, site: Site) -> str:
        return f" ({self._label(site.label).function})" if site.label and site.stack else ""

    def where(self, site: Site) -> str:
        """One line: the function that allocates, at its line, and its label."""
        frame = self.callers(site)[0][0]
        return short(frame.function) + at_line(frame) + self.label(site)

    def chain(self, site: Site, most: int = 3) -> list[str]:
        """Who called it, a few functions far."""
        return [short(frame.function) for frame in self.own(site)[1:most + 1]]


def _first(whole: list[tuple[Frame, str]], own: list[int]) -> int:
    """Where the program's own begins. A module of Python without debug data is passed over: its caller has a line."""
    found = [at for at in own if not is_aside(whole[at][0])]
    if not found:
        return own[-1] if own else 0
    python = next((at for at in found if whole[at][0].is_python), found[0])
    return next((at for at in found if at >= python or whole[at][0].line), found[0])


def is_aside(frame: Frame) -> bool:
    """Whether it serves its caller's wish."""
    return perf_map.is_library(frame) if frame.is_python else is_plumbing(frame.function)


def _tells(frame: Frame) -> bool:
    return interpreter.tells(frame.function) and not is_aside(frame)


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


__all__ = ["ALL", "Choice", "Frame", "Named", "at_line", "is_aside", "is_plumbing", "short", "suppressions"]
