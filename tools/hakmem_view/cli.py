# SPDX-License-Identifier: MIT
"""The commands `./hakmem stats`, `top`, `explain`, `map`, `profile` and `ps`."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn, Optional

import typer

from hakmem_lab import command_line

from . import (explain_view, held_by, installed, map_view, observer, own_program, page, plain, profile_cli, stats_view, terminal,
               top as live)
from .errors import ViewError, need_writable
from .model import Explain, Map, Stats, parse, read

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None,
                  context_settings={"help_option_names": ["-h", "--help"]},
                  help="Looks into a running process that uses hakmem, or into its core file.")
OWN: list[str] = []  # the user's program: what stands behind "--"

Target = typer.Argument(metavar="PID|CORE", help="a running process, or a core file")
Page = typer.Option(None, "--html", metavar="FILE", help="write a page that needs nothing else")


def _say(text: str) -> None:
    print(f"hakmem: {text}", file=sys.stderr)


def _one(**given: object) -> None:
    """At most one of these options."""
    named = [f"--{name}" for name, value in given.items() if value]
    if len(named) > 1:
        raise ViewError(f"either {' or '.join(named)}, not both")


@app.command()
def stats(target: str = Target, json: bool = typer.Option(False, "--json", help="the library's JSON as it is"),
          metrics: bool = typer.Option(False, "--metrics", help="Prometheus text as it is")) -> None:
    """What the memory consists of; classes, threads and events."""
    _one(json=json, metrics=metrics)
    where = observer.find(target)
    if json or metrics:
        plain.pass_on(where, "stats", "--json" if json else "--metrics")
        return
    found = read(Stats.of, where.document("stats"), where.what("stats"))
    stats_view.write(terminal.console(), found, where.title(), where.rss())


@app.command()
def top(target: str = typer.Argument(metavar="PID", help="a running process"),
        once: bool = typer.Option(False, "--once", help="print one frame and end"),
        interval: float = typer.Option(1.0, "--interval", min=0.1, max=3600, help="seconds between two samples"),
        svg: Optional[Path] = typer.Option(None, "--svg", metavar="FILE", help="write one frame as SVG and end")
        ) -> None:
    """A live view: rates of events, classes, threads. q ends it."""
    live.show(observer.find(target), interval, once, svg)


def _explained(where: observer.Observed) -> Explain:
    found = read(Explain.of, where.document("explain"), where.what("explain"))
    found.pid = where.pid  # of a core file there is none to name
    return found


@app.command()
def explain(target: str = Target, json: bool = typer.Option(False, "--json", help="the library's JSON as it is"),
            html: Optional[Path] = Page,
            learner: bool = typer.Option(False, "--learner", help="with the price of each keep time of unused memory")) -> None:
    """Why the resident memory is what it is, and what would lower it."""
    _one(json=json, html=html)
    where = observer.find(target)
    if json:
        plain.pass_on(where, "explain", "--json")
        return
    found, held = _explained(where), held_by.of(where)
    if html is None:
        explain_view.write(terminal.console(), found, where.title(), held, learner)
    else:
        page.save(html, explain_view.html(found, where.title(), held))
        _say(f"page: {html}")


def _show_map(heap: Map, title: str, files: dict[str, Optional[Path]], rss: Optional[int] = None,
              explained: Optional[Explain] = None) -> None:
    heap.rss_bytes = rss
    if files["png"] is not None:
        map_view.write_png(heap, title, files["png"])
        _say(f"picture: {files['png']}")
    elif files["svg"] is not None:
        page.save(files["svg"], map_view.svg(heap, title))
        _say(f"picture: {files['svg']}")
    elif files["html"] is not None:
        page.save(files["html"], map_view.html(heap, title, explained))
        _say(f"page: {files['html']}")
    else:
        map_view.write(terminal.console(), heap, title)


def _map_of_program(files: dict[str, Optional[Path]], options: list[str]) -> NoReturn:
    """Ends with the program's status."""
    for path in filter(None, files.values()):
        need_writable(path)
    aside = own_program.left_aside()
    if aside:
        _say(f"{' and '.join(aside)} of HAKMEM_OPTIONS {'are' if aside[1:] else 'is'} left aside: the map is written")
    ended = own_program.run(OWN, options)
    name = Path(OWN[0]).name
    if ended.report is None:
        _say(f"{name} left no map ({ended.how()}): one is written when a process on hakmem ends by exit")
        sys.exit(ended.status or ViewError.status)
    where = f"the map of {name}"
    heap = read(Map.of, parse(ended.report, where), where)
    if ended.others:
        _say(f"{terminal.count(ended.others, 'other process')} left maps too; this is the one with most memory, or that of {name}")
    _show_map(heap, f"{name} (process {heap.pid or ended.pid}) at its end", files)
    sys.exit(ended.status)


@app.command("map")
def map_(target: Optional[str] = typer.Argument(None, metavar="PID|CORE", help="a running process, or a core file"),
         html: Optional[Path] = Page,
         png: Optional[Path] = typer.Option(None, "--png", metavar="FILE", help="write a picture (needs Chromium)"),
         svg: Optional[Path] = typer.Option(None, "--svg", metavar="FILE", help="write a picture as SVG"),
         profile: str = typer.Option("", "--profile", help=f"with a program: as of {installed.NAME} run"),
         lib: str = typer.Option("", "--lib", help=f"with a program: as of {installed.NAME} run")) -> None:
    """A picture of superslabs and slabs; of a program behind -- when it ends."""
    _one(html=html, png=png, svg=svg)
    files = {"html": html, "png": png, "svg": svg}
    if OWN and target is not None:
        raise ViewError(f"either a process ({target}) or a program behind --")
    options = [f"--{name}={value}" for name, value in (("profile", profile), ("lib", lib)) if value]
    if OWN:
        _map_of_program(files, options)
    if options:
        raise ViewError("--profile and --lib go with a program behind --")
    if target is None:
        raise ViewError("a PID, a core file, or a program behind -- is wanted")
    where = observer.find(target)
    heap = read(Map.of, where.document("map"), where.what("map"))
    explained = None
    if html is not None:
        try:
            explained = _explained(where)
        except ViewError as error:
            _say(f"the page lacks what the learner decided: {error}")
    _show_map(heap, where.title(), files, where.rss(), explained)


app.command("profile")(profile_cli.profile)


@app.command()
def ps(json: bool = typer.Option(False, "--json", help="the list as JSON")) -> None:
    """The processes on hakmem that may be looked into."""
    listed = observer.all_processes()
    if json:
        plain.raw(plain.processes_json(listed))
    else:
        stats_view.write_processes(terminal.console(), listed)


def main() -> None:
    terminal.any_encoding()
    words, own = command_line.split(sys.argv[1:])
    if own is not None and words[:1] not in (["map"], ["profile"]):
        command_line.fail("hakmem", ViewError("only map and profile take a program behind --"))
    if own == []:
        command_line.fail("hakmem", ViewError("no program behind --"))
    OWN[:] = own or []
    try:
        command_line.start(app, installed.NAME, "hakmem", words, status=ViewError.status)
    except Exception as error:  # noqa: BLE001 - a mistake of ours is told in one line, too
        command_line.fail("hakmem", ViewError(f"a mistake of this tool, please report it: "
                                              f"{type(error).__name__}: {error}"))
