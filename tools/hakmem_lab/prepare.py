# SPDX-License-Identifier: MIT
"""From words on the command line to a plan: rows, arms, header; new, or of a run that goes on."""
from __future__ import annotations

import dataclasses
import datetime
import os
from pathlib import Path
from typing import Any, Callable

from . import apps, arms, machine, micro, peers, place, records, rows, session, stats
from .errors import LabError, UsageError
from .rows import Row

ROUNDS = {"quick": 3, "full": 10, "own": 10}
WORK = {"quick": 0.5, "full": 0.6}  # of a row's amount of work, so that a matrix ends within its time
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


def catalogue() -> list[Row]:
    """All rows, small workloads first."""
    found = micro.catalogue()
    for app in apps.discover().values():
        found.append(rows.of_app(app))
    return found


def chosen_rows(settings: Settings) -> list[Row]:
    if settings.own:
        if settings.patterns:
            raise UsageError("either rows or a program of your own after --, not both")
        return [rows.own(settings.own)]
    everything = catalogue()
    known = [row for row in everything if (row.info.group == "latency") == (settings.command == "latency")]
    on_newest = [rows.on_newest(row) for row in everything if row.id in micro.newest()]
    if settings.base == "newest":
        return rows.select([rows.on_newest(row) for row in known if row.app is None],
                           [f"{name}@newest" if "/" in name else name for name in settings.patterns])
    if settings.patterns:
        return rows.select(known + on_newest, settings.patterns)
    if settings.tier == "quick":
        return [row for row in known if row.quick]
    if settings.command == "run" and not settings.base and "glibc-newest" in _peers(settings):
        return known + on_newest
    return known


def _peers(settings: Settings) -> list[str]:
    wanted = settings.peers or [*(peers.QUICK if settings.tier == "quick" else peers.DEFAULT), *settings.libs]
    return [name for name in wanted if name != arms.SUBJECT]


def _specs(settings: Settings) -> list[arms.Spec]:
    names = settings.sides if settings.command == "ab" else [arms.SUBJECT, *_peers(settings)]
    return [arms.parse(name, settings.libs) for name in dict.fromkeys(names)]


def plan(settings: Settings, progress: Callable[[str], None]) -> session.Plan:
    """Finds rows and arms, builds what is missing."""
    chosen = chosen_rows(settings)
    specs = _specs(settings)
    micro.build(progress)
    found = arms.resolve(specs, settings.libs, progress=progress)
    if settings.command == "ab":
        missing = [arm for arm in found if arm.info.skip]
        if missing:
            raise LabError(f"{missing[0].name}: {missing[0].info.skip}")
        found[0].info.kind, found[1].info.kind = "subject", "peer"
        found.append(arms.again(found[1]))
    else:
        if found[0].info.skip:
            raise LabError(f"{found[0].name}: {found[0].info.skip}")
        found.insert(1, arms.again(found[0]))
        if any(row.ideal for row in chosen):
            found.append(arms.ideal())
    if any(row.base == "newest" for row in chosen):
        _restrict_newest(found, chosen)
    chosen = _without_missing_programs(chosen, progress)
    scale = settings.scale * (WORK.get(settings.tier, 1) if settings.command == "run" else 1)
    return session.Plan(chosen, found, settings.rounds or ROUNDS[settings.tier], scale, timeout=settings.timeout)


def _restrict_newest(found: list[arms.Arm], chosen: list[Row]) -> None:
    """In a matrix on two C libraries, few arms run on the second; if the base cannot be had, none does."""
    base = peers.find_base("newest")
    both = any(row.base == "system" for row in chosen)
    for arm in found:
        named = arm.name.split("~")[0]
        if base.skip or (both and named != arms.SUBJECT and named not in ON_NEWEST):
            arm.bases = tuple(name for name in arm.bases if name != "newest")


def _without_missing_programs(chosen: list[Row], progress: Callable[[str], None]) -> list[Row]:
    wanted = [row.app for row in chosen if row.app is not None]
    if wanted:
        progress("looking for the real programs")
        apps.install(wanted)
    kept = []
    for row in chosen:
        lacking = apps.missing(row.app) if row.app is not None else []
        if lacking:
            progress(f"SKIP {row.id}: missing {' '.join(lacking)}")
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
    subject = plan.arms[0].name
    return records.Header(id=f"{now:%Y%m%d-%H%M%S}-{settings.command}-{settings.tier}-{os.getpid()}",
                          started=now.isoformat(timespec="seconds"), tier=settings.tier, machine=machine.fingerprint(),
                          rounds=plan.rounds, threshold=stats.THRESHOLD, subject=subject,
                          arms=[arm.info for arm in plan.arms], rows=[row.info for row in plan.rows],
                          settings=dataclasses.asdict(settings))


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
        folders = [path for path in folders if not records.Run(path).complete]
    if not folders:
        raise LabError("there is no run that was interrupted" if unfinished else
                       "there is no run yet; begin with ./hakmem lab run --quick")
    return folders[-1]


def settings_of(run: records.Run) -> Settings:
    known: dict[str, Any] = {field.name for field in dataclasses.fields(Settings)}
    return Settings(**{key: value for key, value in run.header.settings.items() if key in known})


def check_resumable(run: records.Run, plan: session.Plan) -> None:
    machine.require_same(machine.fingerprint(), run.header.machine, str(run.path))
    session.require_same_arms(run, plan)
