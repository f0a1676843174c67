# SPDX-License-Identifier: MIT
"""Bytes in use by the size of blocks: of known loads, on the terminal and on the page, with and without packages."""
import json
import re

import pytest
import synthetic
from synthetic import Load, Truth
from test_plain import plain
from test_profile import made
from test_profile_page import check, html

from hakmem_view import profile_sizes
from hakmem_view.errors import ViewError
from hakmem_view.profile_model import LIKELY, profile
from hakmem_view.profile_names import Choice, Named

LOAD = Load([Truth([0x1100], 100, 50_000), Truth([0x1200], 64, 200_000), Truth([0x1300], 3 << 20, 7)])


def bins(load: Load = LOAD, seed: int = 1) -> list[profile_sizes.Bin]:
    return profile_sizes.bins(Named(made(load, seed), has_symbols=False))


def test_ranges_have_their_bytes_and_who_holds_most_of_them():
    found = bins()
    assert [one.begin for one in found] == [64, 2 << 20]
    assert found[0].value.bytes == pytest.approx(50_000 * 100 + 200_000 * 64, rel=0.25)
    assert found[0].where == "program+0x1200" and found[0].part == pytest.approx(12.8 / 17.8, abs=0.15)
    assert found[-1].value.bytes == 21 << 20 and found[-1].value.objects == 7 and found[-1].name == "2 MiB – 4 MiB"
    assert sum(one.value.bytes for one in found) == pytest.approx(made(LOAD).estimate, rel=1e-6)


def test_error_of_a_range_is_that_of_its_samples():
    """Beside that of the site, and by repetition: 95 of 100."""
    site = made(Load([Truth([0x1100], 100, 50_000)])).sites[0]
    assert bins(Load([Truth([0x1100], 100, 50_000)]))[0].error == pytest.approx(site.error, rel=0.01)
    truth = 50_000 * 100 + 200_000 * 64
    within = sum(abs(one[0].value.bytes - truth) <= one[0].error for one in (bins(seed=seed) for seed in range(100)))
    assert 88 <= within <= 100 and LIKELY > 1.9


def test_focus_and_profiles_without_sizes():
    named = Named(made(LOAD), has_symbols=False, choice=Choice(focus=re.compile("0x1300")))
    assert [one.begin for one in profile_sizes.bins(named)] == [2 << 20]
    document = synthetic.document(LOAD)
    for site in document["sites"]:
        del site["sizes"]
    assert profile_sizes.lines(Named(profile(document, "it"), has_symbols=False)) == [profile_sizes.NOTHING]
    for odd in (3, 0, -4, 1 << 64, "x"):
        document["sites"][0]["sizes"] = [{"from": odd, "samples": 1}]
        with pytest.raises(ViewError):
            profile(document, "it")


def test_terminal_and_page_show_them(view, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(synthetic.document(LOAD)), encoding="utf-8")
    done = view("profile", "--sizes", tmp_path / "p.json")
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80, done
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(row.startswith("2 MiB – 4 MiB 21.0 MiB 0 % 7 program+0x1300 (100 %)") for row in rows), rows
    alike = [" ".join(line.split()) for line in plain("profile", "--sizes", tmp_path / "p.json").stdout.splitlines()]
    assert rows[rows.index(""):] == alike[alike.index(""):]
    text = html(made(LOAD))
    check(text)
    assert "Sizes of blocks in use" in text and ">2 MiB – 4 MiB</th><td class=\"n\">21.0 MiB" in text
