# SPDX-License-Identifier: MIT
"""Real programs as workloads: what one is, which ones there are, how one is run. They stand in bench/app/*.py."""
from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterable, Optional

from . import place
from .peers import outside
from .errors import LabError
from .process import BadOutput, Done, Failed, Launch, find_program, plain
from .stage import Server, Stage

__all__ = ["App", "BadOutput", "Dice", "Done", "Failed", "Inputs", "Launch", "Outcome", "Server", "Stage",
           "digest", "discover", "find_program", "install", "missing", "packages", "plain", "prepare", "run_app"]


def digest(*parts) -> str:
    """The check string of an output: short, and the same for the same bytes."""
    total = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        total.update(b"%d:" % len(data) + data)  # with the length: ("ab", "c") is not ("a", "bc")
    return total.hexdigest()[:16]


class Dice:
    """Random numbers that are the same everywhere and for ever: of Python's generator only random() promises that."""

    SYLLABLES = "an be co du el fa gi ho in jo ka le mi no or pa qu ri so tu ul ve wi xe yo za".split()

    def __init__(self, seed: int):
        self.random = random.Random(seed).random

    def below(self, limit: int) -> int:
        return int(self.random() * limit)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, things):
        return things[self.below(len(things))]

    def word(self, syllables: int = 3) -> str:
        return "".join(self.pick(self.SYLLABLES) for _ in range(self.between(1, syllables)))

    def text(self, length: int) -> str:
        """Words up to `length` characters."""
        words, size = [], 0
        while size < length:
            words.append(self.word())
            size += len(words[-1]) + 1
        return " ".join(words)[:length]


class Inputs:
    """The inputs of one program at one scale: made once, kept, and looked at again before every run of the lab.
    work/inputs.json remembers what they were."""

    def __init__(self, app: "App", work: Path, scale: float):
        self.folder = work / app.name / f"{scale:g}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key, self.records, self.source = f"{app.name}/{scale:g}", work / "inputs.json", app.source_hash()

    def file(self, name: str, make: Callable[[Path], None]) -> Path:
        """An input that `make(path)` writes, the same bytes every time."""
        path, old = self.folder / name, self._record(name)
        fresh = old.get("source") == self.source
        if fresh and path.is_file() and outside.sha256(path) == old["sha256"]:
            return path
        part = path.with_name(name + ".part")
        make(part)
        made = outside.sha256(part)
        if fresh and made != old["sha256"]:
            raise LabError(f"the input {self.key}/{name} comes out differently each time: its generator is at fault")
        part.replace(path)
        self._remember(name, {"sha256": made, "bytes": path.stat().st_size, "source": self.source})
        return path

    def product(self, name: str, of: Iterable[Path], make: Callable[[Path], None]) -> Path:
        """What `make(path)` builds with tools of this machine out of inputs: a program, a repository. Its bytes may
        differ from machine to machine, so it is known by what it was made of."""
        path = self.folder / name
        origin = digest(self.source, *(outside.sha256(each) for each in of))
        if path.exists() and self._record(name).get("of") == origin:
            return path
        part = path.with_name(name + ".part")
        for old in (part, path):
            _remove(old)
        make(part)
        part.replace(path)
        self._remember(name, {"of": origin})
        return path

    def _all(self) -> dict:
        try:
            return json.loads(self.records.read_text())
        except (OSError, ValueError):  # none yet, or cut off: the inputs are made again
            return {}

    def _record(self, name: str) -> dict:
        return self._all().get(f"{self.key}/{name}", {})

    def _remember(self, name: str, record: dict) -> None:
        records = self._all() | {f"{self.key}/{name}": record}
        part = self.records.with_suffix(".part")
        part.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
        part.replace(self.records)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class App:
    """A real program as a workload. One subclass a program, in a module of its own in bench/app."""

    name = ""  # of the row "app/NAME"
    title = ""  # plain words, for tables
    text = ""  # one or two sentences: what it does
    programs: tuple = ()  # commands it needs
    packages: tuple = ()  # Debian's packages that bring them
    metric = "wall"  # what decides: "wall" | "cpu"
    unit = "ms"  # "ms" | "us/request"
    threads = 1
    quick = False  # takes part in quick runs

    def prepare(self, work: Path, scale: float) -> None:
        """Makes the inputs, on the machine's own allocator."""

    def run(self, stage: Stage) -> str:
        """Does the work; returns the check string (`digest` of the output), raises BadOutput if it is wrong."""
        raise NotImplementedError

    def count(self, number: float, scale: float) -> int:
        return max(1, round(number * scale))

    def source(self) -> Path:
        """The module this program is written in."""
        return Path(sys.modules[type(self).__module__].__file__)

    def source_hash(self) -> str:
        """Changes with the generator, so that inputs of an older one are made again."""
        return digest(self.source().read_bytes(), inspect.getsource(Dice))


@dataclass
class Outcome:
    """What one run of one program on one arm came to. With a failure the figures mean nothing."""

    value: float = math.nan  # in the app's unit, by the app's metric
    wall_ns: int = 0
    cpu_ns: int = 0
    minflt: int = 0
    peak_kib: float = 0
    average_kib: float = 0
    curve: list[tuple[float, float]] = field(default_factory=list)
    check: str = ""
    failure: str = ""  # "" | "signal 11 (SIGSEGV)" | "exit 3" | "no end after 60 s" | "output differs"
    detail: str = ""  # of the failure: what the program said last


def prepare(app: App, work: Path, scale: float = 1.0) -> None:
    """Makes a program's inputs, or finds that they are there and whole."""
    try:
        app.prepare(work, scale)
    except OSError as error:
        raise LabError(f"cannot make the inputs of app/{app.name}: {error.strerror} ({error.filename})") from error


def run_app(app: App, launch: Launch, work: Path, scale: float = 1.0, sample_ms: float = 0,
            timeout: float = 60) -> Outcome:
    """Runs a program once. Its inputs must be prepared. Never raises for what the program does."""
    away = missing(app)
    if away:
        raise LabError(f"app/{app.name} needs {' '.join(away)} (Debian: {' '.join(app.packages)})")
    scratch = _scratch(_scratch_place(work))
    stage = Stage(app, launch, work, scratch, scale, sample_ms, timeout)
    try:
        return _outcome(app, stage, app.run(stage))
    except Failed as failed:
        return Outcome(failure=failed.failure, detail=failed.detail)
    except TimeoutError:  # of a client's socket
        return Outcome(failure=f"no end after {timeout:.0f} s", detail="no answer")
    except ConnectionError as error:
        return Outcome(failure="connection lost", detail=str(error))
    finally:
        stage.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _scratch(place_of_all: Path) -> Path:
    """A fresh folder with our process's number in its name; those of labs that were killed go."""
    for old in place_of_all.glob("hakmem-lab-[0-9]*-*"):
        if not Path("/proc", old.name.split("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"hakmem-lab-{os.getpid()}-", dir=place_of_all))


def _scratch_place(work: Path) -> Path:
    """In memory if there is room: RocksDB waits for the disk longer than it computes."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30:
        return memory
    work.mkdir(parents=True, exist_ok=True)
    return work


def _outcome(app: App, stage: Stage, check: str) -> Outcome:
    stage.close()
    totals = stage.totals
    value = stage.own_value
    if value is None:
        value = (totals.cpu_ns if app.metric == "cpu" else totals.wall_ns) / 1e6
    return Outcome(value, totals.wall_ns, totals.cpu_ns, totals.minflt, totals.peak_kib, totals.average_kib,
                   totals.curve, check)


def discover(folder: Optional[Path] = None) -> dict[str, App]:
    """All programs, by name, in alphabetical order."""
    apps: dict[str, App] = {}
    for path in sorted((folder or place.BENCH / "app").glob("*.py")):
        for app in _apps_of(path):
            if app.name in apps:
                raise LabError(f"two programs are called '{app.name}', one of them in {path.name}")
            apps[app.name] = app
    return dict(sorted(apps.items()))


def _apps_of(path: Path) -> list[App]:
    name = f"hakmem_lab_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = [thing for thing in vars(module).values() if isinstance(thing, type) and issubclass(thing, App)]
    return [each() for each in found if each.__module__ == name]


def missing(app: App) -> list[str]:
    """The commands it needs that are not on this machine."""
    return [name for name in app.programs if not find_program(name)]


def packages(apps: Iterable[App]) -> list[str]:
    """Debian's packages for what these programs lack."""
    return sorted({package for app in apps if missing(app) for package in app.packages})


def install(apps: Iterable[App], progress: Callable[[str], None] = lambda text: None) -> list[str]:
    """Installs what these programs lack, where we may: as root on a system with apt. Each program by itself, so that
    one that cannot be had costs only its own row. Returns the packages that are still lacking."""
    apps = list(apps)
    for app in apps if os.geteuid() == 0 and find_program("apt-get") else []:
        if missing(app):
            try:
                outside.install([(package,) for package in app.packages], f"missing {' '.join(missing(app))}", progress)
            except outside.Skip as reason:
                progress(f"{app.name}: {reason}")
    return packages(apps)
