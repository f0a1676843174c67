# SPDX-License-Identifier: MIT
"""One fixed colour, marker and dash per arm, the same in every figure, table and picture.

Colours are told apart by people with colour-blindness as far as a dozen can be (Okabe and Ito, Tol); the marker and
the dash say the same again. The subject alone is vermilion, and drawn thicker.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the views need the colours alone
    from .model import ArmInfo, RunSummary

SUBJECT = "#d1440c"
INK = "#1f2430"
MUTED = "#5b6270"
GRID = "#e4e7ec"


@dataclass(frozen=True)
class Look:
    colour: str
    symbol: str  # in plotly's words
    dash: str
    width: float = 1.8
    size: int = 11
    bold: bool = False


_RPMALLOC, _GPERFTOOLS = Look("#332288", "cross", "dash"), Look("#cc79a7", "hexagon", "dash")
_KNOWN = {
    "glibc": Look("#4d4d4d", "square", "solid"),
    "glibc-newest": Look("#8a8a8a", "square-open", "dash"),
    "mimalloc": Look("#0072b2", "triangle-up", "solid"),
    "mimalloc2": Look("#56b4e9", "triangle-down", "dash"),
    "mimalloc-debian": Look("#6688cc", "triangle-left", "dashdot"),
    "mimalloc-sid": Look("#2f6f8f", "triangle-right", "dot"),
    "jemalloc": Look("#009e73", "diamond", "solid"),
    "jemalloc-debian": Look("#117733", "diamond-tall", "dash"),
    "tcmalloc": Look("#aa4499", "pentagon", "solid"),
    "gperftools": _GPERFTOOLS,
    "gperftools-debian": _GPERFTOOLS,
    "gperftools-sid": Look("#7b3fb5", "hexagon2", "dot"),
    "hardened_malloc": Look("#8c510a", "octagon", "solid"),
    "hardened_malloc-light": Look("#bf812d", "octagon-open", "dash"),
    "hakmem-hardened": Look("#a03010", "circle-open", "dash"),
    "scudo": Look("#5e7f2a", "star-diamond-open", "solid"),
    "snmalloc": Look("#b8860b", "star", "solid"),
    "rpmalloc": _RPMALLOC,
    "rpmalloc-sid": _RPMALLOC,
    "ideal": Look("#9aa0a8", "circle-open", "dot"),
}
_SPARE = (  # none of the colours above
    Look("#44aa99", "x", "dash"), Look("#882255", "bowtie", "dot"), Look("#999933", "star-square", "dash"),
    Look("#661100", "star-diamond", "dashdot"), Look("#c99700", "hourglass", "dot"),
    Look("#5a3b1c", "diamond-wide", "dashdot"), Look("#c27ba0", "hexagram", "dashdot"),
    Look("#6f7f1f", "star-triangle-up", "dot"),
)
_SUBJECT = Look(SUBJECT, "circle", "solid", 3.6, 15, True)


def looks(summary: RunSummary) -> dict[str, Look]:
    """By arm name. Known allocators keep their colour from run to run; others take spare ones in the run's order."""
    found: dict[str, Look] = {}
    spare = 0
    for arm in summary.arms:
        if arm.name == summary.subject:
            found[arm.name] = _SUBJECT
        elif arm.kind == "again":
            found[arm.name] = Look(SUBJECT, "circle-open", "dot")
        elif arm.name in _KNOWN:
            found[arm.name] = _KNOWN[arm.name]
        else:
            found[arm.name] = _SPARE[spare % len(_SPARE)]
            spare += 1
    return found


def shown(summary: RunSummary) -> list[ArmInfo]:
    """The arms of a figure in the order of all figures: the subject, the others by their mean time, the ideal last.

    The second arm of the A/A pair is left out: it is the subject again, and its verdict stands in the table.
    """
    means = {mean.name: mean.time_mean for mean in summary.means}

    def place(arm: ArmInfo):
        mean = means.get(arm.name, float("nan"))
        return (arm.name != summary.subject, arm.kind == "ideal", mean != mean, mean if mean == mean else 0.0)
    return sorted((arm for arm in summary.arms if not arm.skip and arm.kind != "again"), key=place)
