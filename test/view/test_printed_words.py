# SPDX-License-Identifier: MIT
"""docs/words.md explains what heads the columns and rows of `explain`, `stats`, `map`, `top` and `profile`."""
import io
import re
from pathlib import Path

import pytest
from conftest import sample
from rich.console import Console

from hakmem_view import explain_view, frame, learner_view, profile_report, profile_sizes, stats_view
from hakmem_view.model import Explain, Stats

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {"What", "Key", "Cause", "Blocks", "blocks", "Slabs", "Unused", "PID", "Command", "hakmem", "Bytes of these", ""}  # say it themselves


def explained() -> set[str]:
    """The terms in the first columns of the page's tables."""
    rows = re.findall(r"^\| (.+?) \| .* \|$", (ROOT / "docs/words.md").read_text(), re.M)
    return {term.strip().strip("`") for row in rows for term in re.split(r"[,;:]", row)}


def heads(text: str) -> set[str]:
    """What stands above the rules of tables."""
    lines = text.splitlines()
    return {word for at, line in enumerate(lines[1:]) if re.match("─+$", line) for word in re.split(r"\s{2,}", lines[at].strip())}


def printed(what, document: dict, **more) -> str:
    out = Console(width=200, file=io.StringIO())
    view = {"explain": explain_view, "stats": stats_view}[what]
    view.write(out, {"explain": Explain, "stats": Stats}[what].of(document), "it", **more)
    return out.file.getvalue()


COLUMNS = {
    "profile": {name for mode in profile_report.MODES.values() for name, _ in mode.columns} | {profile_report.rate_column(1)[0], "Where",
                                                                                                profile_report.INCLUSIVE[0]},
    "profile --sizes": {*profile_sizes.HEAD, "Held most by"},
    "profile: a legend": set(profile_report.LEGEND),
    "stats: keys": {key for key, _, _ in (*stats_view.PARTS, *stats_view.ASIDE, *stats_view.HUGE)} | {key for key, _ in stats_view.WITHIN.values()},
    "top": {name for name, _, _ in frame.KINDS} | {"mapped"},
    "causes": set(re.findall(r"^OBS_CAUSE\((\w+)", (ROOT / "observe/causes.def").read_text(), re.M)),
    "explain --learner": heads(printed("explain", sample("explain"), has_learner=True)) | {"in force", "standard", "cheapest"},
    "stats: counts": set(sample("stats")["counts"]),
}


def stem(term: str) -> str:
    return term.lower().removesuffix("s")


@pytest.mark.parametrize("where", COLUMNS)
def test_what_heads_a_column_is_on_the_page(where):
    assert {term for term in COLUMNS[where] - PLAIN if stem(term) not in set(map(stem, explained()))} == set()
