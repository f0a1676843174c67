# SPDX-License-Identifier: MIT
"""Attacks on the heap of each allocator (bench/attack), on a fresh heap and on one that was used before."""
from __future__ import annotations

import dataclasses
import fnmatch
import resource
import subprocess
from collections import Counter
from typing import Callable

from rich.table import Table

from . import peers, place
from .arms import Arm
from .errors import LabError, unknown
from .execute import environment

DEFAULT = ("hakmem", "hakmem-hardened", "glibc", "hardened_malloc-light", "hardened_malloc", "scudo", "snmalloc",
           "mimalloc")
HEAPS = ("warm", "fresh")  # the first counts: a real program has used its heap before
STOPPED, HARMLESS, SUCCEEDED = "stopped", "harmless", "succeeded"
TIMEOUT = 10  # seconds; an attack takes milliseconds. One that hangs has gained nothing


@dataclasses.dataclass(frozen=True)
class Attack:
    kind: str
    name: str


@dataclasses.dataclass
class Outcome:
    """What came of all attacks: (attack, arm's name, heap) -> word."""

    attacks: list[Attack]
    arms: list[Arm]
    words: dict[tuple[Attack, str, str], str]

    def counts(self, arm: str, heap: str, kind: str = "") -> Counter[str]:
        return Counter(self.words[attack, arm, heap] for attack in self.attacks if kind in ("", attack.kind))

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(attack.kind for attack in self.attacks))


def catalogue() -> list[Attack]:
    """As the program lists them."""
    lines = subprocess.run([place.PROGRAMS / "attacks"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [Attack(*line.split("\t")) for line in lines.splitlines()]


def choose(known: list[Attack], words: list[str]) -> list[Attack]:
    """All, or those that a word names: a kind, a name or a pattern."""
    for word in words:
        if not any(fits(attack, word) for attack in known):
            raise unknown("attack", word, [*dict.fromkeys(attack.kind for attack in known)])
    return [attack for attack in known if not words or any(fits(attack, word) for word in words)]


def fits(attack: Attack, word: str) -> bool:
    return word == attack.kind or fnmatch.fnmatch(attack.name, word)


def judge(status: int, said: str) -> str:
    """A signal ends what the allocator, or the kernel for it, does not let pass."""
    if status < 0:
        return STOPPED
    word = said.strip().rpartition("\n")[2]
    if status != 0 or word not in (STOPPED, HARMLESS, SUCCEEDED):
        raise LabError(f"an attack ended with status {status}" + (f": {word}" if word else ""))
    return word


def commit(attack: Attack, arm: Arm, heap: str) -> str:
    launch = arm.launch(peers.find_base("system"))
    env = environment(launch)
    if launch.preloaded():
        env["LD_PRELOAD"] = launch.preloaded()
    words = ["warm"] if heap == "warm" else []
    try:
        done = subprocess.run([place.PROGRAMS / "attacks", attack.name, *words], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return HARMLESS
    try:
        return judge(done.returncode, done.stdout)
    except LabError as error:
        raise LabError(f"{attack.name} on {arm.name}: {error}") from None


def run(attacks: list[Attack], arms: list[Arm], rounds: int, say: Callable[[str], None]) -> Outcome:
    """The most frequent word of so many runs; of equally frequent ones the worst."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    words = {}
    for arm in arms:
        say(f"{len(attacks)} attacks on {arm.info.label or arm.name}")
        for attack in attacks:
            for heap in HEAPS:
                seen = Counter(commit(attack, arm, heap) for _ in range(rounds))
                worst_first = sorted(seen, key=(SUCCEEDED, HARMLESS, STOPPED).index)
                words[attack, arm.name, heap] = max(worst_first, key=seen.__getitem__)
    return Outcome(attacks, arms, words)


def _cell(counts: Counter[str]) -> str:
    return f"{counts[STOPPED]} / {counts[HARMLESS]} / {counts[SUCCEEDED]}"


def _rows(outcome: Outcome) -> list[list[str]]:
    """A row a kind on the used heap, then the sums on both heaps."""
    rows = []
    for kind in outcome.kinds():
        total = sum(attack.kind == kind for attack in outcome.attacks)
        rows.append([f"{kind} ({total})", *[_cell(outcome.counts(arm.name, "warm", kind)) for arm in outcome.arms]])
    for heap in HEAPS:
        rows.append([f"all, {heap} heap ({len(outcome.attacks)})",
                     *[_cell(outcome.counts(arm.name, heap)) for arm in outcome.arms]])
    return rows


def table(outcome: Outcome, each: bool = False) -> Table:
    found = Table(title="attacks: stopped / harmless / succeeded" if not each else "attacks: warm heap, fresh heap",
                  title_justify="left", header_style="bold")
    found.add_column("attack")
    for arm in outcome.arms:
        found.add_column(arm.name, overflow="fold")
    if each:
        for attack in outcome.attacks:
            found.add_row(attack.name, *[", ".join(outcome.words[attack, arm.name, heap] for heap in HEAPS)
                                         for arm in outcome.arms])
    for row in _rows(outcome):
        found.add_row(*row)
    return found


def markdown(outcome: Outcome) -> str:
    head = ["Kind of attack", *[arm.info.label or arm.name for arm in outcome.arms]]
    lines = [head, ["---"] * len(head), *_rows(outcome)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
