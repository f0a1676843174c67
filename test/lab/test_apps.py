# SPDX-License-Identifier: MIT
"""Real programs: which there are, what they need, how their inputs are made. Nothing is run here."""
import json
import os
import subprocess
import sys

import pytest
from hakmem_lab import apps, place
from hakmem_lab.apps import App, Dice, Inputs
from hakmem_lab.errors import LabError


class Away(App):
    name, programs, packages = "away", ("sh", "no-such-program"), ("b", "a")


class Made(App):
    name = "made"

    def __init__(self, words):
        self.words, self.times = words, 0

    def make(self, path):
        self.times += 1
        path.write_text(self.words())


# --- discovery ---------------------------------------------------------------------------------

def test_all_programs_are_found_and_complete():
    found = apps.discover()
    assert {"redis", "sqlite", "g++", "python", "lua", "perl", "z3", "git", "ghostscript"} <= set(found)
    assert list(found) == sorted(found)
    for name, app in found.items():
        assert app.name == name and app.title and app.text and app.programs and app.packages
        assert app.metric in ("wall", "cpu") and app.unit in ("ms", "us/request")
        assert app.metric == "wall" or app.threads == 1
    assert 2 <= sum(app.quick for app in found.values()) <= 3


def test_two_of_one_name_are_refused(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("from hakmem_lab.apps import App\nclass A(App):\n    name = 'same'\n")
    with pytest.raises(LabError, match="two programs are called 'same'"):
        apps.discover(tmp_path)


def test_a_missing_program_is_named():
    app = Away()
    assert apps.missing(app) == ["no-such-program"]
    assert apps.packages([app, Made(str)]) == ["a", "b"]


def test_nothing_is_installed_without_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started something"))
    assert apps.install([Away()]) == ["a", "b"]
    assert apps.install([Made(str)]) == []


# --- inputs ------------------------------------------------------------------------------------

MAKE = """
import json, os, sys
from pathlib import Path
from hakmem_lab import apps
def touch(argv, *_, **__):  # no compiler, no git: what they would make is an empty file
    path = str(argv[-1])
    if os.path.isabs(path):
        Path(path).touch()
work = Path(sys.argv[1])
for app in apps.discover().values():
    sys.modules[type(app).__module__].plain = touch
    app.prepare(work, 0.01)
records = json.loads((work / "inputs.json").read_text())
print(json.dumps({name: record.get("sha256") for name, record in records.items()}, sort_keys=True))
"""


def make_all_inputs(work, seed):
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(place.ROOT / "tools")}
    command = [sys.executable, "-c", MAKE, str(work)]
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout)


def test_inputs_are_the_same_every_time(tmp_path):
    first, second = make_all_inputs(tmp_path / "one", "1"), make_all_inputs(tmp_path / "two", "2")
    assert first == second
    assert {name.split("/")[0] for name in first} >= {"redis", "sqlite", "g++", "perl", "z3", "git", "ghostscript"}


def test_dice_are_the_same_for_ever():
    dice = Dice(1)
    assert [dice.below(1000) for _ in range(5)] == [134, 847, 763, 255, 495]
    assert len(dice.text(50)) == 50 and 3 <= dice.between(3, 4) <= 4


def test_an_input_is_made_once_and_mended(tmp_path):
    app = Made(lambda: "same")
    for _ in range(2):
        path = Inputs(app, tmp_path, 1).file("words", app.make)
    assert app.times == 1 and json.loads((tmp_path / "inputs.json").read_text())["made/1/words"]["bytes"] == 4
    path.write_text("damaged")
    assert Inputs(app, tmp_path, 1).file("words", app.make).read_text() == "same" and app.times == 2
    (tmp_path / "inputs.json").write_text("{ cut o")
    assert Inputs(app, tmp_path, 1).file("words", app.make).read_text() == "same" and app.times == 3


def test_a_generator_that_varies_is_found_out(tmp_path):
    numbers = iter("123")
    app = Made(lambda: next(numbers))
    Inputs(app, tmp_path, 1).file("words", app.make).unlink()
    with pytest.raises(LabError, match="comes out differently"):
        Inputs(app, tmp_path, 1).file("words", app.make)


def test_a_product_follows_what_it_is_made_of(tmp_path):
    app, source = Made(lambda: "built"), tmp_path / "source"
    for text in ("one", "one", "two"):
        source.write_text(text)
        Inputs(app, tmp_path, 1).product("program", [source], app.make)
    assert app.times == 2
