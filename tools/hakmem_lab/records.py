# SPDX-License-Identifier: MIT
"""results.jsonl: one line a measurement, written at once, so that nothing measured is lost.

The first line is the run's header: the file appears with it, so whoever finds the file can read it. A last line that is cut off (power, full disk, kill) is ignored when reading; the
measurement it was for is made again by --resume.
"""
from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import Any, Iterator

from . import whole
from .errors import LabError
from .model import ArmInfo, RowInfo

FORMAT = 1
NAME = "results.jsonl"


@dataclasses.dataclass
class Header:
    id: str
    started: str
    tier: str
    machine: dict[str, str]
    rounds: int
    threshold: float
    subject: str
    arms: list[ArmInfo]
    rows: list[RowInfo]
    settings: dict[str, Any]  # what --resume needs to set up the same arms and rows again
    scale: float = 1.0  # of the rows' amounts of work
    parts: int = 1  # into which a round divides a workload; the fastest counts
    programs: str = ""  # hash of the workloads and the rig
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)  # rows that could not be measured, and why


def _line(kind: str, **fields: Any) -> bytes:
    return (json.dumps({"kind": kind, **fields}, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


class Writer:
    """With a header: of a run that begins, in place of what may be there. Without: of one that goes on."""

    def __init__(self, path: Path, header: Header | None = None):
        self.path = path
        try:
            if header is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                whole.write(path, _line("run", format=FORMAT, **dataclasses.asdict(header)))
            else:
                self._mend()
            self.file = open(path, "ab")
        except OSError as error:
            raise LabError(f"cannot write {path}: {error.strerror}") from error

    def _mend(self) -> None:
        """Cuts off a last line without its end, so that the next one begins at the start of a line."""
        with open(self.path, "rb+") as file:
            data = file.read()
            if data and not data.endswith(b"\n"):
                file.truncate(data.rfind(b"\n") + 1)

    def add(self, kind: str, **fields: Any) -> None:
        try:
            self.file.write(_line(kind, **fields))
            self.file.flush()
        except OSError as error:
            reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            raise LabError(f"cannot write {self.path}: {reason}; what was measured stays, continue with "
                           f"--resume") from error

    def close(self) -> None:
        try:
            self.file.close()
        except OSError:
            pass


def lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise LabError(f"{path}: line {number} is no JSON: {error}") from error
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from error


def _known(cls, fields: dict[str, Any]):
    names = {field.name for field in dataclasses.fields(cls)}
    return cls(**{key: value for key, value in fields.items() if key in names})


class Run:
    """A run as read back: the header and its measurements."""

    def __init__(self, path: Path):
        if path.is_dir():
            path = path / NAME
        self.path = path
        self.header: Header | None = None
        self.samples: list[dict[str, Any]] = []
        self.complete = False
        for record in lines(path):
            kind = record.pop("kind", None)
            if kind == "run":
                if record.pop("format", None) != FORMAT:
                    raise LabError(f"{path} was written by another version of the lab; measure again")
                record["arms"] = [_known(ArmInfo, arm) for arm in record["arms"]]
                record["rows"] = [_known(RowInfo, row) for row in record["rows"]]
                self.header = _known(Header, record)
            elif kind == "end":
                self.complete = True
            else:
                self.samples.append({"kind": kind, **record})
        if self.header is None:
            raise LabError(f"{path} has no header: it is no results file of the lab, or was cut; measure again")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [sample for sample in self.samples if sample["kind"] == kind]

    def done(self) -> set[tuple[str, str, str, int]]:
        """What need not be measured again: (kind, row, arm, round); a failure ends an arm's part in a row."""
        keys = set()
        for sample in self.samples:
            keys.add((sample["kind"], sample["row"], sample["arm"], sample.get("round", 0)))
        return keys


def folders(runs: Path) -> list[Path]:
    """All runs, the oldest first."""
    if not runs.is_dir():
        return []
    return sorted((path for path in runs.iterdir() if (path / NAME).is_file()),
                  key=lambda path: os.stat(path / NAME).st_mtime)
