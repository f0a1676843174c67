# SPDX-License-Identifier: MIT
"""All processes on hakmem as Prometheus sees them: the statistics of each with labels, the causes of its resident memory, and
what the exporter itself did.

Costs are bounded: so many processes, so long for each, two at a time, and one collection for all who ask within a moment."""
from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Iterator, Optional

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from hakmem_view import observer, process
from hakmem_view.errors import Closed, ViewError

from . import labels

AT_ONCE = 2  # observers
CLASSES = re.compile(r"^(# \w+ )?hakmem_class_.*\n", re.M)  # 20 series for each of up to 60 classes: `hakmem stats` has them
MOST_SERIES = 150  # a process
CAUSE = ("hakmem_resident_cause_bytes", "resident memory by cause: the causes of a process sum to its resident memory")


@dataclass
class Limits:
    """What a collection may cost."""

    processes: int = 200
    seconds: float = 10.0  # for a process
    explain_bytes: int = 4 << 30  # resident memory above which causes are left out, as they take 50 ms per GiB
    fresh_seconds: float = 1.0  # a collection that is younger serves again


@dataclass
class Found:
    """What was read of a process."""

    pid: int
    labels: dict[str, str]
    statistics: list[Metric] = field(default_factory=list)
    causes: dict[str, int] = field(default_factory=dict)
    reason: str = ""  # why there is nothing
    ended: bool = False


def in_base_units(families: Iterator[Metric]) -> Iterator[Metric]:
    """Times in seconds, as Prometheus asks."""
    for one in families:
        if one.name.endswith("_ms"):
            name = f"{one.name[:-3]}_seconds"
            seconds = Metric(name, one.documentation, one.type)
            for sample in one.samples:
                seconds.add_sample(name, sample.labels, sample.value / 1000)
            yield seconds
        else:
            yield one


def read(pid: int, limits: Limits) -> Found:
    found, where = Found(pid, labels.of(pid)), observer.Observed(str(pid), pid)
    try:
        text = where.read("stats", "--metrics", seconds=limits.seconds).decode("utf-8", "replace")
        found.statistics = list(in_base_units(text_string_to_metric_families(CLASSES.sub("", text))))
        if (where.rss() or 0) <= limits.explain_bytes:
            document = where.document("explain", seconds=limits.seconds)
            found.causes = {str(cause["name"]): int(cause["bytes"]) for cause in document["causes"]}
    except Closed:
        found.ended = True
    except (ViewError, ValueError, KeyError, TypeError) as error:
        found.reason = str(error)
    return found


class Collector:
    """Registered with prometheus_client."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.lock = threading.Lock()
        self.last: list[Metric] = []
        self.until = 0.0  # of a clock that only goes on: until then it serves
        self.scrapes = 0

    def describe(self) -> list[Metric]:
        """Nothing: to be registered collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self.lock:  # others wait, and get the same
            if time.monotonic() >= self.until:
                self.last = self._collected()
                self.until = time.monotonic() + self.limits.fresh_seconds
            return iter(self.last)

    def _collected(self) -> list[Metric]:
        begin, all_pids = time.monotonic(), list(observer.on_hakmem())
        chosen = sorted(all_pids, key=lambda pid: -(process.rss(pid) or 0))[:self.limits.processes]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = [one for one in pool.map(lambda pid: read(pid, self.limits), chosen) if not one.ended]
        self.scrapes += 1
        return [*merged(found), *self._own(found, len(all_pids) - len(chosen), time.monotonic() - begin)]

    def _own(self, found: list[Found], left: int, seconds: float) -> list[Metric]:
        values = (("processes", "processes on hakmem that were read", sum(not one.reason for one in found)),
                  ("unreadable_processes", "processes on hakmem that could not be read", sum(bool(one.reason) for one in found)),
                  ("skipped_processes", "processes on hakmem above the limit of --most", left),
                  ("collect_seconds", "how long it took to read them", seconds))
        scrapes = CounterMetricFamily("hakmem_exporter_collections", "how often processes were read", value=self.scrapes)
        return [*(GaugeMetricFamily(f"hakmem_exporter_{name}", text, value=value) for name, text, value in values), scrapes]


def merged(found: list[Found]) -> list[Metric]:
    """Each family once, with the samples of all processes."""
    families: dict[str, Metric] = {}
    readable = Metric("hakmem_readable", "whether the process on hakmem could be read", "gauge")
    causes = Metric(*CAUSE, "gauge")
    for one in found:
        readable.add_sample("hakmem_readable", one.labels, 0 if one.reason else 1)
        left = MOST_SERIES - 1 - len(one.causes)
        for name, value in one.causes.items():
            causes.add_sample(CAUSE[0], {**one.labels, "cause": name}, value)
        for family in one.statistics:
            into = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples[:max(0, left)]:
                into.add_sample(sample.name, {**one.labels, **sample.labels}, sample.value)
            left -= len(family.samples)
    return [one for one in (readable, causes, *families.values()) if one.samples]


def explained(pid: int, form: str, seconds: Optional[float]) -> bytes:
    """Of a process: the document, or the text."""
    return observer.find(str(pid)).read("explain", *["--json"] * (form == "json"), seconds=seconds)


def profiled(pid: int, form: str, seconds: Optional[float]) -> bytes:
    """Of a process that samples, or did."""
    where = observer.find(str(pid))
    body = where.read("profile", "--format", form, seconds=seconds)
    if "sampled nothing" in where.note:
        raise ViewError(f"{where.title()} has sampled nothing: start it with HAKMEM_OPTIONS=profile_rate:512k, or ask it by "
                        f"hakmem tell {pid} rate 512k")
    return body
