# SPDX-License-Identifier: MIT
"""The words of `./hakmem profile`, and what is done for them."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Optional

import typer

from . import observer, process, profile_command, profile_plain, profile_push, profile_view, terminal
from .errors import ViewError
from .installed import NAME
from .profile_command import Asked
from .profile_group import BY
from .profile_model import Profile
from .profile_names import Named
from .profile_plain import CHOICES, LIST, MODES, PUSH, SIZES


def _file(words: str):
    return typer.Option(None, metavar="FILE", help=words)


def _flag(name: str, words: str):
    return typer.Option(False, f"--{name}", help=words)


def _choice(name: str, kind: str = "REGEX"):
    return typer.Option("", f"--{name}", metavar=kind, help=CHOICES[name])


def _rate(text: str) -> int:
    try:
        return profile_plain.rate_of(text)
    except argparse.ArgumentTypeError as error:
        raise ViewError(f"profile: --rate: {process.plain(str(error))}") from error


def profile(  # noqa: PLR0913 - words of the command line
        targets: Optional[list[str]] = typer.Argument(None, metavar="PID|CORE|FILE.json", help="the process, a core file, or "
                                                      "profiles written by --json, the oldest first; or -- PROGRAM ARGS..."),
        rate: str = typer.Option("", "--rate", metavar="BYTES", help="mean bytes between two samples; 512k"),
        seconds: Optional[float] = typer.Option(None, "--seconds", min=0, max=86400, help="how long to sample; 10"),
        diff: str = typer.Option("", "--diff", metavar="OLD.json", help="what has grown since then"),
        leaks: bool = _flag("leaks", MODES["leaks"]), alloc: bool = _flag("alloc", MODES["alloc"]),
        peak: bool = _flag("peak", MODES["peak"]), pinned: bool = _flag("pinned", MODES["pinned"]),
        lifetimes: bool = _flag("lifetimes", MODES["lifetimes"]), per_thread: bool = _flag("per-thread", MODES["per-thread"]),
        json: Optional[Path] = _file("the library's JSON as it is"), pprof: Optional[Path] = _file("for go tool pprof"),
        otlp: Optional[Path] = _file("for OpenTelemetry collectors (profiles, v1development)"),
        heap_v2: Optional[Path] = _file("for jeprof"), collapsed: Optional[Path] = _file("folded stacks, for flamegraph.pl"),
        speedscope: Optional[Path] = _file("for speedscope.app"), html: Optional[Path] = _file("a page with flame graphs"),
        push: str = typer.Option("", "--push", metavar="URL", help=PUSH),
        rows: int = typer.Option(20, "--rows", min=0, help="rows that are shown; 0: all"),
        by: str = typer.Option("function", "--by", metavar="|".join(BY), help="what a row is: a function, a line of it, or a stack"),
        sizes: bool = _flag("sizes", SIZES),
        lists: str = typer.Option("", "--list", metavar="REGEX", help=LIST),
        focus: str = _choice("focus"), ignore: str = _choice("ignore"), hide: str = _choice("hide"),
        suppressions: str = _choice("suppressions", "FILE"),
        keep: bool = _flag("keep", "leave sampling on"), stop: bool = _flag("stop", "switch sampling off, and end"),
        run_profile: str = typer.Option("", "--profile", help=f"with a program: as of {NAME} run"),
        lib: str = typer.Option("", "--lib", help=f"with a program: as of {NAME} run")) -> None:
    """Who holds the memory: sites by bytes in use, of a process, of stored profiles, or of a program behind --."""
    from . import cli  # the user's program is there

    flags = {"alloc": alloc, "peak": peak, "pinned": pinned, "lifetimes": lifetimes, "leaks": leaks, "per-thread": per_thread}
    mode = [name for name, value in flags.items() if value]
    if len(mode) > 1 or mode and diff:
        raise ViewError(f"either {' or '.join('--' + name for name in [*mode, *(['diff'] if diff else [])])}, not both")
    if by not in BY:
        raise ViewError(f"profile: --by is {', '.join(BY)}, not '{process.plain(by)[:40]}'")
    files = {"json": json, "pprof": pprof, "otlp": otlp, "heap-v2": heap_v2, "collapsed": collapsed, "speedscope": speedscope,
             "html": html}
    asked = Asked(list(targets or []), _rate(rate) if rate else 0, seconds,
                  "diff" if diff else "".join(mode).replace("per-thread", "threads") or "inuse", diff,
                  {name: path for name, path in files.items() if path is not None}, profile_push.server(push) if push else None,
                  keep, stop, rows, by,
                  profile_command.choice(focus, ignore, hide, suppressions), profile_command.pattern("list", lists), sizes)
    options = [f"--{name}={value}" for name, value in (("profile", run_profile), ("lib", lib)) if value]
    if cli.OWN:
        _of_program(asked, cli.OWN, options)
    elif options:
        raise ViewError("--profile and --lib go with a program behind --")
    elif stop:
        profile_command.stop(asked)
    else:
        _of_targets(asked)


def _pprof(named: Named, kind: str) -> bytes:
    try:
        from . import profile_pprof
    except ModuleNotFoundError as error:
        raise ViewError("--pprof needs the Python package protobuf") from error
    return profile_pprof.encode(named, kind)


def _otlp(named: Named, kind: str) -> bytes:
    try:
        from . import profile_otlp
    except ModuleNotFoundError as error:
        raise ViewError("--otlp needs the Python package opentelemetry-proto") from error
    return profile_otlp.encode(named, kind)


def _refused(answer: bytes) -> str:
    from . import profile_otlp
    return profile_otlp.refused(answer)


def _page(shots: list[Profile], named: Named, about: str, kind: str) -> str:
    try:
        from . import profile_page
    except ModuleNotFoundError as error:
        raise ViewError(f"--html needs the Python package {error.name}") from error
    return profile_page.html(shots, named, about, kind)


def _finish(asked: Asked, shots: list, named: Named, about: str, before: Optional[Profile], since: Optional[Profile] = None) -> None:
    """The files, and what a server gets; the table if nothing else is asked for."""
    if asked.is_shown:
        profile_view.write(terminal.console(), named, about, asked, before, since)
        return
    if before is not None and before is not shots[0].found:
        shots = [profile_command.Shot(before, b""), *shots]
    profile_command.write_files(asked, shots, named, about, {"pprof": _pprof, "otlp": _otlp, "refused": _refused}, _page)


def _of_program(asked: Asked, own: list[str], options: list[str]) -> None:
    """Ends with the program's status."""
    if asked.targets:
        raise ViewError(f"either a process ({asked.targets[0]}) or a program behind --")
    before = profile_command.stored(asked.diff).found if asked.diff else None
    shot, ended = profile_command.of_program(own, asked, options)
    if shot is None:
        sys.exit(ended.status or ViewError.status)
    _finish(profile_command.shown_at_end(asked, shot.found), [shot], asked.named(shot.found),
            f"{Path(own[0]).name} (process {shot.found.pid or ended.pid}) at its end", before)
    sys.exit(ended.status)


def _of_targets(asked: Asked) -> None:
    if not asked.targets:
        raise ViewError("a PID, a core file, a stored profile, or a program behind -- is wanted")
    before = profile_command.stored(asked.diff).found if asked.diff else None
    if all(map(profile_command.is_stored, asked.targets)):
        shots = [profile_command.stored(path) for path in asked.targets]
        about = profile_command.title(shots[-1].found)
        before = before or (shots[0].found if len(shots) > 1 else None)
        _finish(asked, shots, asked.named(shots[-1].found), about, before)
        return
    if len(asked.targets) > 1:
        raise ViewError(f"profile: too many words: {' '.join(asked.targets[1:])}")
    out = terminal.console()
    where = observer.find(asked.targets[0])
    if out.is_terminal and asked.seconds is None and asked.is_table and where.pid:
        _live(asked, where, out, before)
        return
    shots, _, pid = profile_command.of_process(asked)
    named = asked.named(shots[-1].found, pid)
    if before is None and asked.mode == "leaks" and len(shots) > 1:
        before = shots[0].found
    _finish(asked, shots, named, profile_command.title(shots[-1].found, pid), before, profile_command.since(shots))


def _live(asked: Asked, where: observer.Observed, out, before: Optional[Profile]) -> None:
    session = profile_command.Session(where, asked)
    try:
        named = profile_view.live(out, session, asked)
    finally:
        session.end()
    if before is None and asked.mode == "leaks":
        before = session.first.found
    profile_view.write(out, named, profile_command.title(named.profile, session.pid), asked, before, session.first.found)
