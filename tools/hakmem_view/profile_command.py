# SPDX-License-Identifier: MIT
"""`./hakmem profile`: from the words of the user to profiles, and to the files that he wants of them. By the standard
library alone but for --pprof with names and --html, which are handed in."""
from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Iterator, Optional

from . import observer, own_program, perf_map, process, profile_formats, profile_push
from .errors import Closed, Slow, ViewError, need_writable
from .profile_model import Profile, code_to, profile
from .profile_names import ALL, Choice, Frame, Named, suppressions
from .wording import count, duration, size

RATE, SECONDS = 524288, 10.0
MOST_RATE = 1 << 40
PEAK = 4  # times what is left at its end
SHOTS = 12  # profiles for growth over time, at most
KINDS_OF = {"alloc": "alloc", "peak": "peak", "pinned": "pinned", "lifetimes": "alloc"}  # of modes; else in use
CORE = b"\x7fELF"  # how core files begin


@dataclass
class Asked:
    """What the user asked for."""

    targets: list[str]
    rate: int = 0  # 0: as it is, or the standard
    seconds: Optional[float] = None
    mode: str = "inuse"
    diff: str = ""
    files: dict[str, Path] = field(default_factory=dict)  # json, pprof, otlp, heap-v2, collapsed, speedscope, html
    push: Optional[profile_push.Server] = None
    keep: bool = False
    stop: bool = False
    rows: int = 20
    by: str = "function"
    choice: Choice = ALL
    listed: Optional[re.Pattern] = None  # functions whose source is shown in place of the table
    sizes: bool = False  # bytes by the size of blocks in place of it

    def named(self, found: Profile, pid: int = 0) -> Named:
        return Named(found, pid, choice=self.choice)

    @property
    def is_shown(self) -> bool:
        """On the terminal, not in files or on a server."""
        return not self.files and self.push is None

    @property
    def is_table(self) -> bool:
        """A table of functions, which may be live."""
        return self.is_shown and not self.listed and not self.sizes

    @property
    def kind(self) -> str:
        return KINDS_OF.get(self.mode, "inuse")


@dataclass
class Shot:
    """A profile and the document that it was read from."""

    found: Profile
    body: bytes


def pattern(name: str, text: str) -> Optional[re.Pattern]:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ViewError(f"profile: --{name}: {error}") from error


def choice(focus: str, ignore: str, hide: str, known: str) -> Choice:
    """`known`: a file of leaks that are known, as LSan has it."""
    patterns = [pattern(name, text) for name, text in (("focus", focus), ("ignore", ignore), ("hide", hide))]
    try:
        text = Path(known).read_text(encoding="utf-8", errors="replace") if known else ""
    except OSError as error:
        raise ViewError(f"cannot read {process.plain(known)}: {error.strerror}") from error
    return Choice(*patterns, suppressions(text))


def say(text: str) -> None:
    print(f"hakmem: {text}", file=sys.stderr, flush=True)


def shot(body: bytes, where: str) -> Shot:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ViewError(f"{where} is not JSON: {process.plain(' '.join(str(error).split()))[:80]}") from error
    if not isinstance(document, dict):
        raise ViewError(f"{where} is no profile of hakmem")
    return Shot(profile(document, where), body)


def with_code(one: Shot, code: dict[int, Frame], threads: Optional[dict[int, str]] = None) -> Shot:
    """With the names of functions that were made at run time, and of threads, and the resident memory, which nothing else keeps."""
    document = json.loads(one.body)
    added = {**({"code": code_to(code)} if code else {}), **({"rss_bytes": one.found.rss} if one.found.rss else {}),
             **({"threads": [{"tid": tid, "name": name} for tid, name in sorted(threads.items())]} if threads else {})}
    if all(document.get(key) == value for key, value in added.items()):
        return one
    document.update(added)
    return Shot(profile(document, "it"), json.dumps(document, separators=(",", ":")).encode())


def stored(path: str) -> Shot:
    try:
        return shot(Path(path).read_bytes(), process.plain(path))
    except OSError as error:
        raise ViewError(f"cannot read {process.plain(path)}: {error.strerror}") from error


def is_stored(word: str) -> bool:
    """Whether a word names a profile as JSON, neither a core file nor one that a process has kept."""
    try:
        if word.isdigit() or not Path(word).is_file() or observer.is_kept(Path(word)):
            return False
        with open(word, "rb") as file:
            return file.read(len(CORE)) != CORE
    except OSError:
        return True  # which says why it cannot be read


def read(where: observer.Observed, seconds: Optional[float] = None) -> Shot:
    """What it samples, or has sampled."""
    found = shot(where.read("profile", "--format", "json", seconds=seconds), where.what("profile"))
    found.found.rss = where.rss()
    return found


class Session:
    """Sampling in a process: begins if it is off, and ends with us if we began it. A core file has what it had."""

    def __init__(self, where: observer.Observed, asked: Asked):
        self.where, self.asked = where, asked
        self.began = False
        self.first = read(where)
        now = self.first.found
        wanted = asked.rate or (now.rate if now.is_on else RATE)
        if where.pid and (not now.is_on or asked.rate and now.rate != asked.rate):
            self.began = not now.is_on
            try:
                self.where.tell("rate", str(wanted), is_brief=True)  # who would stop it later?
                self.first = read(where)
            except Slow:  # which took it back
                raise
            except BaseException:  # it may have begun
                self._stop()
                raise

    @property
    def pid(self) -> int:
        return self.where.pid or self.first.found.pid

    def shots(self, seconds: float, number: int) -> Iterator[Shot]:
        """That many profiles after the first, the last one after so many seconds, sooner if the user interrupts us or
        the process ends."""
        begin = time.monotonic()
        for at in range(1, number + 1):
            try:
                time.sleep(max(0.0, begin + seconds * at / number - time.monotonic()))
                yield read(self.where)
            except KeyboardInterrupt:
                say("interrupted: this is the profile until now")
                yield read(self.where)
                return
            except Closed:
                say(f"{self.where.title()} has ended: this is its last profile" if at > 1 else
                    f"{self.where.title()} has ended")
                return

    def end(self) -> None:
        """What we began, we end, unless the user wants it to go on."""
        if self.began and self.asked.keep:
            say("sampling goes on; --stop ends it")
        else:
            self._stop()

    def _stop(self) -> None:
        if self.began:
            try:
                self.where.tell("rate", "0")
            except Slow:
                say(f"{self.where.title()} stops sampling when it next allocates")
            except ViewError:
                pass  # it has ended


def stop(asked: Asked) -> None:
    for target in asked.targets:
        where = observer.find(target)
        where.tell("rate", "0")
        say(f"{where.title()} samples no more")


def of_process(asked: Asked) -> tuple[list[Shot], observer.Observed, int]:
    """Profiles over the time that the user waits, the oldest first, and whose they are."""
    where = observer.find(asked.targets[0])
    for path in asked.files.values():
        need_writable(path)
    session = Session(where, asked)
    seconds = (SECONDS if asked.seconds is None else asked.seconds) if where.pid else 0
    try:
        number = SHOTS if "html" in asked.files else 3
        taken = [session.first, *session.shots(seconds, number if seconds else 0)]
    finally:
        session.end()
    return taken, where, where.pid


def since(shots: list[Shot]) -> Optional[Profile]:
    """What rates refer to: the first of several profiles of a process."""
    return shots[0].found if len(shots) > 1 else None


def shown_at_end(asked: Asked, found: Profile) -> Asked:
    """What was in use at the peak, where little of it is left and the user did not say what he wants."""
    if asked.mode != "inuse" or asked.diff or not asked.is_table or found.peak_bytes <= PEAK * max(found.estimate, 1):
        return asked
    say(f"{size(found.estimate)} is left at its end, {size(found.peak_bytes)} was in use at its peak: this is the peak")
    return replace(asked, mode="peak")


def of_program(program: list[str], asked: Asked, options: list[str]) -> tuple[Optional[Shot], own_program.Ended]:
    """The profile at the end of the user's program; None if it left none."""
    for path in asked.files.values():
        need_writable(path)
    aside = own_program.left_aside()
    if aside:
        say(f"{' and '.join(aside)} of HAKMEM_OPTIONS {'are' if aside[1:] else 'is'} left aside: the profile is written")
    name = Path(program[0]).name
    wish, refusal = perf_map.wish(program), perf_map.refusal(program)
    if wish:
        say(f"{name} runs with {' '.join(f'{key}={value}' for key, value in wish.items())}, to name its functions and see its "
            "small objects")
    if refusal:
        say(f"{name} {refusal} reads no variables: functions are named only by -X perf from CPython 3.12 on, else the "
            "interpreter's; objects up to 512 bytes are not seen")
    has_rate = not asked.rate and "profile_rate" in own_program.given()
    ended = own_program.run(program, options, "profile", "" if has_rate else f"profile_rate:{asked.rate or RATE}",
                            wish)
    silence = perf_map.silence(program, wish, ended.code)
    if silence and ended.report is not None:
        say(f"{name} named no function of Python: {silence}")
    if ended.report is None:
        say(f"{name} left no profile ({ended.how()}): one is there at its exit, or from its 32nd sample on; a smaller --rate samples more")
        return None, ended
    if ended.signal:
        say(f"{name} was {ended.how()}: this is its profile at that moment")
    if ended.others:
        say(f"{count(ended.others, 'other process')} left profiles too; this is the one with most memory, or that of {name}")
    left = shot(ended.report, f"the profile of {name}")
    return with_code(left, perf_map.names(ended.code, left.found.addresses)), ended


Encoder = Callable
Page = Callable[[list[Profile], Named, str, str], str]  # profiles, names, title, kind


def _write(path: Path, data: bytes | str) -> None:
    data = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if str(path) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ViewError(f"cannot write {path}: {error.strerror}") from error
    say(f"{path}: {size(len(data))}")


def write_files(asked: Asked, shots: list[Shot], named: Named, title: str, encoders: dict[str, Encoder],
                page: Optional[Page]) -> None:
    """Every file that was asked for, of the last profile; and what a server gets. `encoders`: forms by other packages; "refused":
    a server's complaint in its answer by OTLP."""
    last, kind = shots[-1], asked.kind
    makers: dict[str, Callable[[], bytes | str]] = {
        "json": lambda: with_code(last, named.code(), named.threads).body,
        "heap-v2": lambda: profile_formats.heap_v2(last.found, named.sites),
        "collapsed": lambda: profile_formats.collapsed(named, kind),
        "speedscope": lambda: profile_formats.speedscope_text(named, title, kind)}
    makers.update((name, lambda name=name: encoders[name](named, kind)) for name in encoders.keys() - {"refused"})
    if page is not None:
        makers["html"] = lambda: page([one.found for one in shots], named, title, "diff" if asked.mode == "diff" else kind)
    for name, path in asked.files.items():
        if name not in makers:
            raise ViewError(f"--{name} needs the Python environment of the source tree")
        _write(path, makers[name]())
    if asked.push is not None:
        if asked.push.form not in encoders:
            raise ViewError("--push by OTLP needs the Python package opentelemetry-proto")
        text, answer = profile_push.send(asked.push, last.found, encoders[asked.push.form](named, kind))
        refused = encoders["refused"](answer) if asked.push.form == "otlp" else ""
        if refused:
            raise ViewError(f"{asked.push.name} refuses the profile: {refused}")
        say(text)


def title(found: Profile, pid: int = 0) -> str:
    """Whose profile it is."""
    name = process.plain(found.program) or (process.name(pid) if pid else "?")
    number = pid or found.pid
    return f"process {number} ({name})" if number else name
