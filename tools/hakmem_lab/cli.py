# SPDX-License-Identifier: MIT
"""The commands of `./hakmem lab`."""
from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import sys
from pathlib import Path
from typing import List, Optional

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import arms, attacks, command_line, contention as locks, instructions, ledger, micro, peers, place, png
from . import prepare, publish, records, report
from . import health as health_check
from . import results, scale_bundle, scale_run, scale_show, store, summary
from . import syscalls as system_calls
from . import tables
from .errors import LabError, UsageError
from .rows import select
from .session import Plan, Session

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None,
                  help="Measures hakmem and its peers on the same work: time, memory, system calls, latency.")
OWN: list[str] = []  # the user's program: what stands behind "--"

Rows = typer.Argument(None, help="rows, patterns ('larson/*'), workloads or groups; all of the tier if none is named")
FewRows = typer.Argument(None, help="rows, patterns, workloads or groups; those of --quick if none is named")
Peers = typer.Option("", "--peers", help="allocators to compare with, separated by commas")
Lib = typer.Option([], "--lib", help="name=path: a library of your own that joins; may be repeated")
Rounds = typer.Option(0, "--rounds", min=0, max=1000, help="how often each arm is measured; 0: quick 3, else 10")
Scale = typer.Option(1.0, "--scale", min=0.001, max=100, help="amount of work of each measurement")
Timeout = typer.Option(0, "--timeout", min=0, max=86400,
                       help="seconds after which a measurement counts as hung; 0: 60, long rows and programs 600")
RunName = typer.Argument("", help="a run's name or folder; the last one if none is named")


def say(text: str) -> None:
    tables.console(stderr=True).print(f"lab: {tables.escape(text)}")


def named(text: str) -> list[str]:
    """Splits at commas; a word that is an option belongs to the arm before it (hakmem+learn:0,cache:1m)."""
    words: list[str] = []
    for word in text.replace(" ", ",").split(","):
        option = word.split(":")[0] in arms.option_names()
        if option and words and "+" in words[-1] and "+" not in word:
            words[-1] += f",{word}"
        elif word:
            words.append(word)
    return words


def parse_libs(pairs: List[str]) -> dict[str, str]:
    """Looks for the files at once: before anything is built."""
    libs = peers.user_libs(pairs)
    for name, path in libs.items():
        if not Path(path).is_file():
            raise UsageError(f"--lib {name}: there is no file {path}")
    return {name: str(Path(path).resolve()) for name, path in libs.items()}


def execute(plan: Plan, folder: Path, head: Optional[records.Header], previous: Optional[records.Run]) -> None:
    """Measures what is still to be measured, with a progress bar. `head`: of a run that begins."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())
    out = tables.console(stderr=True)
    with store.Alone():
        prepare.prepare_inputs(plan, say)
        writer = records.Writer(folder / records.NAME, head)
        with contextlib.closing(writer), Progress(*columns, console=out, disable=not out.is_terminal) as bar:
            task = bar.add_task("", total=plan.measurements())
            current = [""]

            def step(row, arm) -> None:
                if row.id != current[0]:
                    current[0] = row.id
                    if not out.is_terminal:
                        say(row.id)
                bar.update(task, advance=1, description=f"{row.id:32} {arm.name:20}")

            Session(plan, writer, previous, step).run()


def begin(settings: prepare.Settings) -> Path:
    """Sets up a run and measures; returns its folder."""
    plan = prepare.plan(settings, say)
    head = prepare.header(settings, plan)
    return measure(plan, place.RUNS / head.id, head, None)


def resume(name: str) -> tuple[Path, prepare.Settings]:
    """Goes on with a run; returns its folder, and what it was asked for. A run that was cut before its first sample
    begins anew, in its folder and with what is there now: there is nothing that the rest would have to agree with."""
    folder = prepare.find_run(name, unfinished=True)
    previous = records.Run(folder)
    if previous.complete:
        raise UsageError(f"the run {folder.name} is complete")
    settings = prepare.settings_of(previous)
    OWN[:] = settings.own
    if settings.folder:
        os.chdir(settings.folder)  # paths of libraries and programs are as they were typed
    if not previous.samples:
        plan = prepare.plan(settings, say)
        head = dataclasses.replace(prepare.header(settings, plan), id=previous.header.id)
        return measure(plan, folder, head, None), settings
    plan = prepare.plan(settings, say, [row.id for row in previous.header.rows])
    prepare.check_resumable(previous, plan)
    return measure(plan, folder, None, previous), settings


def measure(plan: Plan, folder: Path, head: Optional[records.Header], previous: Optional[records.Run]) -> Path:
    for arm in plan.arms:
        if arm.info.skip:
            say(f"SKIP {arm.name}: {arm.info.skip}")
        elif arm.info.kind != "again":
            say(f"{arm.name}: {arm.info.label}" + (f", {arm.info.library}" if arm.info.library else ""))
    try:
        execute(plan, folder, head, previous)
    except KeyboardInterrupt:
        if not (folder / records.NAME).exists():
            raise  # nothing was begun
        say(f"interrupted; what was measured is in {folder}; go on with: ./hakmem lab run --resume")
        show(folder)
        raise typer.Exit(130) from None
    return folder


def show(folder: Path) -> None:
    """Tables on the terminal, and the report beside the results."""
    found = summary.summarise(records.Run(folder))
    if found.rows:
        tables.print_run(tables.console(), found)
        report.write_report(found, folder / "report.html")
        say(f"report: {folder / 'report.html'}")


def conclude(folder: Path, settings: prepare.Settings) -> None:
    """What is shown at the end of a run: the tables, or the verdict of ab."""
    if settings.command != "ab":
        show(folder)
        return
    found = summary.summarise(records.Run(folder))
    sides = [arm.name for arm in found.arms[:2]]
    counts = instructions.count_rows(settings, settings.sides, say) if settings.count and not settings.own else {}
    tables.console().print(ledger.terminal(found, sides, counts))
    if settings.ledger:
        ledger.write(Path(settings.ledger), ledger.table(found, sides, counts))
        say(f"table written into {settings.ledger}")
    report.write_report(found, folder / "report.html")
    say(f"report: {folder / 'report.html'}")


@app.command("list")
def list_() -> None:
    """Names the rows and the allocators."""
    out = tables.console()
    for row in prepare.catalogue():
        marks = " (quick)" if row.quick else " (only if it is named)" if row.named else ""
        out.print(f"{row.id:28} {row.info.group:9} {tables.escape(row.info.title)}{marks}", soft_wrap=True)
    out.print()
    for name, peer in peers.catalogue().items():
        out.print(f"{name:28} {peer.origin:9} {tables.escape(peer.about)}", soft_wrap=True)


@app.command("peers")
def peers_(names: Optional[List[str]] = typer.Argument(None, help="allocators; all if none is named"),
           rebuild: bool = typer.Option(False, "--rebuild", help="build again what is built from source"),
           lib: List[str] = Lib) -> None:
    """Builds or finds the allocators, and prints the versions that the loaded libraries state."""
    libs = parse_libs(lib)
    wanted = names or [*peers.catalogue(), *libs]
    specs = [arms.parse(name, libs) for name in wanted]
    micro.build(say)
    if rebuild:
        for spec in specs:
            peers.find(spec.peer, rebuild=True, progress=say, libs=libs)
    found = arms.resolve(specs, libs, progress=say)
    about = {name: peer.about for name, peer in peers.catalogue().items()}
    tables.console().print(tables.peers_table([arm.info for arm in found], about))


@app.command()
def run(rows: Optional[List[str]] = Rows, quick: bool = typer.Option(False, "--quick", help="few rows, 3 rounds"),
        full: bool = typer.Option(False, "--full", help="all rows, 10 rounds (the default)"),
        peer: str = Peers, lib: List[str] = Lib, rounds: int = Rounds, scale: float = Scale,
        base: str = typer.Option("", "--base", "--libc", help="the C library all arms run on: system, newest or musl"),
        timeout: int = Timeout,
        again: bool = typer.Option(False, "--resume", help="go on with the run that was interrupted last"),
        name: str = typer.Option("", "--run", help="with --resume: which one")) -> None:
    """Measures rows, or your own program (behind --), on hakmem and its peers."""
    if quick and full:
        raise UsageError("either --quick or --full")
    if base not in ("", *peers.BASES):
        raise UsageError(f"unknown base '{base}'; there are: {' '.join(sorted(peers.BASES))}")
    if name and not again:
        raise UsageError("--run goes with --resume")
    if again:
        conclude(*resume(name))
        return
    tier = "own" if OWN else "quick" if quick else "rows" if rows else "full"
    if OWN and quick and not rounds:
        rounds = prepare.ROUNDS["quick"]
    settings = prepare.Settings("run", tier, list(rows or []), named(peer), parse_libs(lib), rounds, scale, base,
                                list(OWN), timeout, folder=os.getcwd())
    conclude(begin(settings), settings)


@app.command()
def ab(idea: str = typer.Argument(help="what is new: options (learn:0), a library, an allocator"),
       against: str = typer.Argument("hakmem", help="what it is compared with"),
       rows: Optional[List[str]] = FewRows, lib: List[str] = Lib,
       rounds: int = typer.Option(20, "--rounds", min=2, max=1000, help="how often each side is measured"),
       scale: float = Scale, timeout: int = Timeout,
       count: bool = typer.Option(True, help="count instructions too (valgrind)"),
       into: Optional[Path] = typer.Option(None, "--ledger", help="a page of docs/experiments that gets the table")
       ) -> None:
    """GO, NEUTRAL or NO-GO: an idea against what is there, in one run, with an A/A pair."""
    settings = prepare.Settings("ab", "own" if OWN else "quick", list(rows or []), [], parse_libs(lib), rounds, scale,
                                "system", list(OWN), timeout, [idea, against], count,
                                str(into.resolve()) if into else "", os.getcwd())
    sides = [arms.parse(word, settings.libs).name for word in (idea, against)]
    if sides[0] == sides[1]:
        raise UsageError(f"both sides are {sides[0]}; an A/A pair is part of every run")
    conclude(begin(settings), settings)


@app.command("report")
def report_(name: str = RunName, figures: bool = typer.Option(False, "--png", help="the figures as PNG files too"),
            publish_: bool = typer.Option(False, "--publish", help="CSV into bench/results, and the pages from it"),
            readme: bool = typer.Option(False, "--readme", help="only the pages' tables and the picture, from the CSV")
            ) -> None:
    """Writes the HTML report of a run; with options also figures, CSV, pages."""
    if readme:
        publish.write_pages()
        return
    folder = prepare.find_run(name)
    found = summary.summarise(records.Run(folder))
    report.write_report(found, folder / "report.html")
    say(f"report: {folder / 'report.html'}")
    if figures:
        for path in png.write_pngs(found, folder):
            say(f"figure: {path}")
    if publish_:
        if not found.complete:
            raise LabError(f"the run {found.id} is not complete; go on with --resume first")
        table = results.write_csv(found)
        publish.write_pages(table)
        say(f"published: {table}")


@app.command()
def latency(rows: Optional[List[str]] = Rows, quick: bool = typer.Option(False, "--quick", help="few rows"),
            peer: str = Peers, lib: List[str] = Lib,
            rounds: int = typer.Option(3, "--rounds", min=1, max=3, help="how often each arm is measured"),
            scale: float = Scale, timeout: int = Timeout) -> None:
    """Times every single malloc and free: percentiles, worst case."""
    settings = prepare.Settings("latency", "quick" if quick else "full", list(rows or []), named(peer),
                                parse_libs(lib), rounds, scale, "system", timeout=timeout, folder=os.getcwd())
    conclude(begin(settings), settings)


@app.command()
def syscalls(rows: Optional[List[str]] = FewRows, peer: str = Peers, lib: List[str] = Lib,
             scale: float = Scale) -> None:
    """Counts the system calls of each allocator on rows, or on your own program (behind --)."""
    settings = prepare.Settings("run", "own" if OWN else "quick", list(rows or []), named(peer), parse_libs(lib), 1,
                                scale, "system", list(OWN))
    plan = prepare.plan(settings, say)
    for row in plan.rows:
        if row.app is None:
            tables.console().print(system_calls.table(row, plan, say))
        else:
            say(f"{row.id}: real programs are not traced; use: syscalls -- PROGRAM")


@app.command("attacks")
def attacks_(names: Optional[List[str]] = typer.Argument(None, help="kinds or names of attacks; all if none is named"),
             peer: str = Peers, lib: List[str] = Lib,
             rounds: int = typer.Option(3, "--rounds", min=1, max=100, help="runs of each; the most frequent counts"),
             each: bool = typer.Option(False, "--each", help="every attack, not only their kinds"),
             into: Optional[Path] = typer.Option(None, "--ledger", help="a page that gets the table")) -> None:
    """Attacks the heap of each allocator: what is stopped, and what succeeds."""
    libs = parse_libs(lib)
    specs = [arms.parse(name, libs) for name in arms.with_libs(named(peer) or attacks.DEFAULT, libs)]
    micro.build(say)
    found = arms.resolve(specs, libs, progress=say)
    for arm in found:
        if arm.info.skip:
            say(f"SKIP {arm.name}: {arm.info.skip}")
    shown = [arm for arm in found if not arm.info.skip]
    outcome = attacks.run(attacks.choose(attacks.catalogue(), list(names or [])), shown, rounds, say)
    tables.console().print(attacks.table(outcome, each))
    if into:
        ledger.write(into, attacks.markdown(outcome))
        say(f"table written into {into}")


@app.command()
def contention(rows: Optional[List[str]] = typer.Argument(None, help="rows or patterns; all with threads if none is named"),
               rounds: int = typer.Option(3, "--rounds", min=1, max=20, help="runs of each row; the median one counts"),
               scale: float = Scale) -> None:
    """What each lock of hakmem costs on a row, and what that means for 64 and 256 CPUs."""
    known = [row for row in micro.catalogue() if row.info.threads > 1 and row.info.group != "latency"]
    chosen = select(micro.catalogue(), rows) if rows else [row for row in known if not row.named]
    micro.build(say)
    with store.Alone():
        library = locks.build(say)
        found = {}
        for row in chosen:
            say(row.id)
            found[row.id] = locks.median([locks.count(row, library, scale) for _ in range(rounds)])
    tables.console().print(locks.table(found))


@app.command()
def scale(rows: Optional[List[str]] = typer.Argument(None, help="larson, stress …; all if none is named"),
          peer: str = Peers, lib: List[str] = Lib,
          minutes: float = typer.Option(8, "--minutes", min=0.01, help="all together"),
          threads: str = typer.Option("", "--threads", help="1,2,4; else powers of two, and the number of CPUs"),
          repetitions: int = typer.Option(0, "--repetitions", min=0, help="at most so many; 0: as the time allows"),
          seconds: float = typer.Option(0, "--seconds", min=0, help="of a measurement; 0: as the time allows"),
          timeout: float = typer.Option(scale_run.TIMEOUT, "--timeout", min=0.1,
                                        help="seconds after which a measurement counts as hung"),
          out: Optional[Path] = typer.Option(None, "--out", help="folder of the results; else one in build/lab/scale"),
          bundle: Optional[Path] = typer.Option(None, "--bundle", help="measure nothing; write an archive for another"
                                                " machine"),
          show_: Optional[Path] = typer.Option(None, "--show", help="measure nothing; show the results there again")
          ) -> None:
    """Throughput of each allocator on 1, 2, 4 … all CPUs, and where it stops scaling."""
    if show_:
        print(scale_show.write(show_), end="")
        return
    options = scale_run.Options(minutes, scale_run.numbers(threads), list(rows or []), [], repetitions, seconds,
                                timeout)
    libs = parse_libs(lib)
    micro.build(say)
    found = scale_bundle.find(named(peer), libs, say)
    with store.Alone():
        folder = place.LAB / "scale" / scale_bundle.NAME
        scale_bundle.fill(folder, found)
        if bundle:
            scale_bundle.pack(folder, bundle)
            say(f"{bundle}, {bundle.stat().st_size / 1e6:.1f} MB; there: tar xf {bundle.name} && cd {scale_bundle.NAME}"
                f" && python3 scale.py --minutes {minutes:g} --out results")
            return
        out = out or place.LAB / "scale" / f"{datetime.datetime.now():%Y%m%d-%H%M%S}"
        print(scale_run.run(folder, out, options), end="")
        say(f"results: {out}")


@app.command()
def health(rounds: int = typer.Option(6, "--rounds", min=2, max=100, help="of the comparison with glibc"),
           scale: float = Scale) -> None:
    """The profiles' smoke loads: fails on a crash, on growth, or on a NO-GO against the committed results."""
    micro.build(say)
    with store.Alone():
        problems, notes = health_check.check(rounds, scale, say)
    out = tables.console()
    for note in notes:
        out.print(tables.escape(note))
    for problem in problems:
        out.print(f"[red]FAIL[/] {tables.escape(problem)}")
    out.print("[red]unhealthy[/]" if problems else "[green]healthy[/]")
    if problems:
        raise typer.Exit(1)


def main() -> None:
    words, own = command_line.split(sys.argv[1:])
    if own == []:
        command_line.fail("lab", UsageError("no program behind --"))
    OWN[:] = own or []
    command_line.start(app, "./hakmem lab", "lab", words)
