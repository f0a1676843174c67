# SPDX-License-Identifier: MIT
"""`hakmem profile` by Python's standard library alone: text instead of tables, no page, and the library's own pprof file
instead of one with names."""
from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from . import held_by, observer, profile_command, profile_list, profile_push, profile_report, profile_sizes
from .errors import ViewError
from .installed import NAME, page
from .profile_command import Asked, Shot
from .profile_group import BY
from .profile_names import Named

FILES = {"json": "the library's JSON as it is", "pprof": "for go tool pprof, which finds the names itself",
         "heap-v2": "for jeprof", "collapsed": "folded stacks, for flamegraph.pl", "speedscope": "for speedscope.app"}
PUSH = "send it to a server: http://HOST:4040/ingest (Pyroscope), http://HOST:4318/v1development/profiles (OpenTelemetry)"
SIZES = "bytes in use by the size of blocks, and who holds most of each, in place of the table"
LIST = "the source of matching functions with bytes beside its lines, in place of the table"
CHOICES = {"focus": "only stacks with a function or file that matches", "ignore": "no stack with a function or file that matches",
           "hide": "leave matching functions out of stacks",
           "suppressions": "with --leaks: leaks that are known, in LSan's format (leak:PATTERN)"}
MODES = {"alloc": "all that was allocated", "peak": "what was in use at the peak",
         "pinned": "whose blocks keep free memory resident", "lifetimes": "how long blocks live",
         "leaks": "what grows and stays", "per-thread": "by the thread that allocated"}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if "--html" in message or "--otlp" in message:
            message += f"; that needs the Python packages of {page('view')}, --otlp opentelemetry-proto, too"
        raise ViewError(f"profile: {message}")


def parser() -> Parser:
    found = Parser(prog="hakmem profile", allow_abbrev=False, usage="hakmem profile [OPTIONS] PID|CORE|FILE.json... | -- PROGRAM",
                   description="Who holds the memory: sites by bytes in use.")
    found.add_argument("targets", nargs="*", metavar="PID|CORE|FILE.json", help="a process, a core file, or profiles written by --json, the oldest first")
    found.add_argument("--rate", type=rate_of, default=0, metavar="BYTES", help="mean bytes between two samples; 512k")
    found.add_argument("--seconds", type=float, help="how long to sample; 10")
    found.add_argument("--rows", type=int, default=profile_report.MOST, help="rows that are shown; 0: all")
    found.add_argument("--by", choices=list(BY), default="function", help="what a row is: a function, a line of it, or a stack")
    found.add_argument("--sizes", action="store_true", help=SIZES)
    found.add_argument("--list", default="", metavar="REGEX", help=LIST)
    for name, words in CHOICES.items():
        found.add_argument(f"--{name}", default="", metavar="FILE" if name == "suppressions" else "REGEX", help=words)
    modes = found.add_mutually_exclusive_group()
    modes.add_argument("--diff", default="", metavar="OLD.json", help="what has grown since then")
    for name, words in MODES.items():
        modes.add_argument(f"--{name}", dest="mode", action="store_const", const=name.replace("per-thread", "threads"),
                           help=words)
    for name, words in FILES.items():
        found.add_argument(f"--{name}", type=Path, metavar="FILE", help=words)
    found.add_argument("--push", default="", metavar="URL", help=PUSH)
    found.add_argument("--keep", action="store_true", help="leave sampling on")
    found.add_argument("--stop", action="store_true", help="switch sampling off, and end")
    for name, kind in (("profile", "NAME"), ("lib", "PATH")):
        found.add_argument(f"--{name}", dest=f"run_{name}", default="", metavar=kind, help=f"with a program: as of {NAME} run")
    return found


def rate_of(text: str) -> int:
    """Bytes, with the units of options: 64k, 2m."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    number, unit = (text[:-1], units[text[-1].lower()]) if text[-1:].lower() in units else (text, 1)
    if not (number.isascii() and number.isdigit()) or not 1 <= int(number) * unit <= profile_command.MOST_RATE:
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is no number of bytes (512k, 2m)")
    return int(number) * unit


def asked_of(words: list[str]) -> tuple[Asked, list[str]]:
    """What is asked for, and the options of `./hakmem run`."""
    found = parser().parse_args(words)
    if found.seconds is not None and not 0 <= found.seconds <= 86400 or found.rows < 0:
        raise ViewError("profile: --seconds and --rows are numbers of 0 and more")
    files = {name: path for name in FILES if (path := getattr(found, name.replace("-", "_"))) is not None}
    options = [f"--{name}={value}" for name in ("profile", "lib") if (value := getattr(found, f"run_{name}"))]
    return Asked(found.targets, found.rate, found.seconds, "diff" if found.diff else found.mode or "inuse", found.diff, files,
                 profile_push.server(found.push) if found.push else None, found.keep, found.stop, found.rows, found.by,
                 profile_command.choice(*(getattr(found, name) for name in CHOICES)),
                 profile_command.pattern("list", found.list), found.sizes), options


def _finish(asked: Asked, shots: list[Shot], named: Named, title: str, before, own_pprof, since=None) -> None:
    if not asked.is_shown:
        profile_command.write_files(asked, shots, named, title, {"pprof": own_pprof}, None)
        return
    width = shutil.get_terminal_size().columns
    if asked.listed:
        print("\n".join(profile_list.lines(named, asked.listed, asked.kind, max(width, 60))))
        return
    if asked.sizes:
        print("\n".join([*profile_report.head(named.profile, title)[:1], "", *profile_sizes.lines(named, max(width, 60))]))
        return
    print("\n".join(profile_report.lines(profile_report.make(named, title, asked.mode, before, asked.rows, since, asked.by),
                                         width)))


def _no_pprof(*_) -> bytes:
    raise ViewError("--pprof of a stored profile needs the Python environment of the source tree")


def add_to_explain(words: list[str]) -> None:
    """Below the text of `explain PID`: who holds what, where the process samples."""
    if len(words) != 2 or words[0] != "explain" or words[1].startswith("-"):
        return
    for cause, rows in held_by.of(observer.find(words[1])).items():
        for row in rows:
            print(f"{cause} is held by {row}")


def run(words: list[str]) -> int:
    """The status."""
    own = words[words.index("--") + 1:] if "--" in words else None
    asked, options = asked_of(words[:words.index("--")] if own is not None else words)
    if (own is None) == (not asked.targets) or own == []:
        raise ViewError("profile: a PID, a core file, a stored profile, or a program behind -- is wanted")
    before = profile_command.stored(asked.diff).found if asked.diff else None
    if own:
        shot, ended = profile_command.of_program(own, asked, options)
        if shot is not None:
            _finish(profile_command.shown_at_end(asked, shot.found), [shot], asked.named(shot.found),
                    f"{Path(own[0]).name} (process {shot.found.pid}) at its end", before, _no_pprof)
        return ended.status or (0 if shot is not None else ViewError.status)
    if asked.stop:
        profile_command.stop(asked)
    elif all(map(profile_command.is_stored, asked.targets)):
        shots = [profile_command.stored(path) for path in asked.targets]
        before = before or (shots[0].found if len(shots) > 1 else None)
        _finish(asked, shots, asked.named(shots[-1].found), profile_command.title(shots[-1].found), before, _no_pprof)
    elif len(asked.targets) > 1:
        raise ViewError(f"profile: too many words: {' '.join(asked.targets[1:])}")
    else:
        shots, where, pid = profile_command.of_process(asked)
        if before is None and asked.mode == "leaks":
            before = shots[0].found
        sys.stdout.flush()
        _finish(asked, shots, asked.named(shots[-1].found, pid), profile_command.title(shots[-1].found, pid), before,
                lambda *_: where.read("profile", "--format", "pprof"), profile_command.since(shots))
    return 0
