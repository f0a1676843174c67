# SPDX-License-Identifier: MIT
"""From words on the command line to a plan: rows, arms, header; new, or of a run that goes on."""
from __future__ import annotations

import dataclasses
import datetime
import os
from pathlib import Path
from typing import Any, Callable, Optional

from . import apps, arms, machine, micro, peers, place, records, rows, session, stats
from .errors import LabError, UsageError
from .rows import Row

ROUNDS = {"quick": 3, "full": 10, "rows": 10, "own": 10}
WORK = {"quick": 0.5, "full": 0.5, "rows": 0.5}  # of a row's amount of work, so that a matrix ends within its time
ON_NEWEST = ("glibc-newest", "mimalloc", "snmalloc")  # arms beside hakmem on the rows of the newest C library


@dataclasses.dataclass
class Settings:
    """What a run was asked for; kept in its header, so that --resume sets up the same."""

    command: str = "run"  # run | ab | latency
    tier: str = "full"
    patterns: list[str] = dataclasses.field(default_factory=list)
    peers: list[str] = dataclasses.field(default_factory=list)
    libs: dict[str, str] = dataclasses.field(default_factory=dict)
    rounds: int = 0
    scale: float = 1.0
    base: str = ""  # "": system, and newest where the full matrix asks for it
    own: list[str] = dataclasses.field(default_factory=list)
    timeout: float = 0
    sides: list[str] = dataclasses.field(default_factory=list)  # of ab: the idea, and what it is compared with
    count: bool = False  # of ab: count instructions too
    ledger: str = ""  # of ab: the page that gets the table
    folder: str = ""  # where it was asked for: what relative paths mean


def catalogue() -> list[Row]:
    """All rows, small workloads first."""
    found = micro.catalogue()
    for app in apps.discover().values():
        found.append(rows.of_app(app))
    return found


def _fits(row: Row, command: str) -> bool:
    """Rows that time single calls are for `latency` and `run`; their own time says nothing, so not for `ab`."""
    is_latency = row.info.group == "latency"
    return is_latency if command == "latency" else not is_latency or command == "run"


def _on_newest(known: list[Row]) -> list[Row]:
    """What can be run by another loader: one program, that starts no others."""
    return [rows.on_newest(row) for row in known if row.app is None and row.info.group != "start"]


def chosen_rows(settings: Settings) -> list[Row]:
    if settings.own:
        if settings.patterns:
            raise UsageError("either rows or a program of your own after --, not both")
        row = rows.own(settings.own)
        on = {"newest": rows.on_newest, "musl": rows.on_musl}.get(settings.base)
        return [on(row) if on else row]
    everything = catalogue()
    known = [row for row in everything if _fits(row, settings.command)]
    matrix = [row for row in _on_newest(known) if row.id.removesuffix("@newest") in micro.newest()]
    if settings.base == "newest":
        known = _on_newest(known)
    elif settings.base == "musl":
        known, matrix = [rows.on_musl(row) for row in known if row.app is None], []
    if settings.patterns:
        return rows.select(known + [row for row in matrix if row not in known and _names_newest(settings.patterns)],
                           settings.patterns)
    known = rows.select(known, [])
    if settings.tier == "quick":
        return [row for row in known if row.quick]
    if settings.command == "run" and not settings.base and "glibc-newest" in _peers(settings):
        return known + matrix
    return known


def _names_newest(patterns: list[str]) -> bool:
    return any("@" in pattern or pattern == "newest" for pattern in patterns)


def _peers(settings: Settings) -> list[str]:
    usual = peers.MUSL if settings.base == "musl" else peers.QUICK if settings.tier == "quick" else peers.DEFAULT
    wanted = arms.with_libs(settings.peers or usual, settings.libs)
    return [name for name in wanted if name != arms.SUBJECT]


def _specs(settings: Settings) -> list[arms.Spec]:
    names = settings.sides if settings.command == "ab" else [arms.SUBJECT, *_peers(settings)]
    return [arms.parse(name, settings.libs) for name in dict.fromkeys(names)]


def plan(settings: Settings, progress: Callable[[str], None], only: Optional[list[str]] = None) -> session.Plan:
    """Finds rows and arms, builds what is missing. `only`: the rows of a run that goes on."""
    chosen = chosen_rows(settings)
    if only is not None:
        chosen = [row for row in chosen if row.id in only]
    specs = _specs(settings)
    base = peers.find_base(settings.base or "system")
    if base.name == "musl" and base.skip:
        raise LabError(f"the C library musl: {base.skip}")
    micro.build(progress, place.MUSL if base.name == "musl" else None)
    found = _arms(settings, arms.resolve(specs, settings.libs, progress=progress, base=base))
    if any(row.ideal for row in chosen) and settings.command != "ab":
        found.append(arms.ideal())
    if any(row.base == "newest" for row in chosen):
        _restrict_newest(found, chosen)
    skipped: dict[str, str] = {}
    chosen = _without_missing_programs(chosen, skipped, progress)
    _note_bases(found, chosen)
    scale = settings.scale * (WORK.get(settings.tier, 1) if settings.command == "run" else 1)
    return session.Plan(chosen, found, settings.rounds or ROUNDS[settings.tier], scale, timeout=settings.timeout,
                        skipped=skipped)


def _arms(settings: Settings, found: list[arms.Arm]) -> list[arms.Arm]:
    """The arms with their roles: who is judged, and who is there twice."""
    needed = found if settings.command == "ab" else found[:1]
    for arm in needed:
        if arm.info.skip:
            raise LabError(f"{arm.name}: {arm.info.skip}")
    if settings.command == "ab":
        found[0].info.kind, found[1].info.kind = "subject", "peer"
        return [*found, arms.again(found[1])]
    return [found[0], arms.again(found[0]), *found[1:]]


def _restrict_newest(found: list[arms.Arm], chosen: list[Row]) -> None:
    """In a matrix on two C libraries, few arms run on the second; if the base cannot be had, none does."""
    base = peers.find_base("newest")
    both = any(row.base == "system" for row in chosen)
    if base.skip and not both:
        raise LabError(f"the newest C library: {base.skip}")
    for arm in found:
        named = arm.name.split("~")[0]
        if base.skip or (both and named != arms.SUBJECT and named not in ON_NEWEST):
            arm.bases = tuple(name for name in arm.bases if name != "newest")


def _note_bases(found: list[arms.Arm], chosen: list[Row]) -> None:
    """Writes into each arm which C libraries it runs on."""
    used = list(dict.fromkeys(row.base for row in chosen))
    for arm in found:
        arm.info.base = ", ".join(peers.find_base(name).label for name in used if name in arm.bases)


def _without_missing_programs(chosen: list[Row], skipped: dict[str, str],
                              progress: Callable[[str], None]) -> list[Row]:
    wanted = [row.app for row in chosen if row.app is not None]
    if wanted:
        progress("looking for the real programs")
        apps.install(wanted, progress)
    kept = []
    for row in chosen:
        lacking = apps.missing(row.app) if row.app is not None else []
        if lacking:
            skipped[row.id] = f"missing {' '.join(lacking)}"
            progress(f"SKIP {row.id}: {skipped[row.id]}")
        else:
            kept.append(row)
    if not kept:
        raise LabError("no row is left to measure")
    return kept


def prepare_inputs(plan: session.Plan, progress: Callable[[str], None]) -> None:
    for row in plan.rows:
        if row.app is not None:
            progress(f"inputs of {row.app.name}")
            apps.prepare(row.app, place.WORK, plan.scale)


def header(settings: Settings, plan: session.Plan) -> records.Header:
    now = datetime.datetime.now(datetime.timezone.utc)
    return records.Header(id=f"{now:%Y%m%d-%H%M%S}-{settings.command}-{settings.tier}-{os.getpid()}",
                          started=now.isoformat(timespec="seconds"), tier=settings.tier, machine=machine.fingerprint(),
                          rounds=plan.rounds, threshold=stats.THRESHOLD, subject=plan.arms[0].name,
                          arms=[arm.info for arm in plan.arms], rows=[row.info for row in plan.rows],
                          settings=dataclasses.asdict(settings), scale=plan.scale, parts=rows.REPEATS,
                          programs=place.PROGRAMS.name,
                          skipped=plan.skipped)


def _unfinished(folders: list[Path]) -> list[Path]:
    """Of these runs those that can go on; what cannot be read is none."""
    found = []
    for path in folders:
        try:
            if not records.Run(path).complete:
                found.append(path)
        except LabError:
            continue
    return found


def find_run(word: str, *, unfinished: bool = False) -> Path:
    """The folder of a run: by name, by path, or the last one."""
    if word and Path(word).exists():
        return Path(word) if Path(word).is_dir() else Path(word).parent
    folders = records.folders(place.RUNS)
    if word:
        hits = [path for path in folders if path.name == word]
        if not hits:
            names = " ".join(path.name for path in folders[-8:]) or "none yet"
            raise UsageError(f"unknown run '{word}'; there are: {names}")
        return hits[0]
    if unfinished:
        folders = _unfinished(folders)
    if not folders:
        raise LabError("there is no run that was interrupted" if unfinished else
                       "there is no run yet; begin with ./hakmem lab run --quick")
    return folders[-1]


def settings_of(run: records.Run) -> Settings:
    known: dict[str, Any] = {field.name for field in dataclasses.fields(Settings)}
    return Settings(**{key: value for key, value in run.header.settings.items() if key in known})


def check_resumable(run: records.Run, plan: session.Plan) -> None:
    machine.require_same(machine.fingerprint(), run.header.machine, str(run.path))
    session.require_same(run, plan, place.PROGRAMS.name)
