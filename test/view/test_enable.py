# SPDX-License-Identifier: MIT
"""hakmem.enable(functions=True) of the wheel's module, here beside a built library: names while the program runs, no map
behind it, and a reason where there can be no names."""
import shutil
import subprocess
from pathlib import Path

import pytest
from test_python_names import FOLDER, all_pythons, pytestmark  # noqa: F401  (the condition)
from test_real import LIBRARY, ROOT


def module(folder: Path) -> Path:
    tree = folder / "hakmem" / "_tree" / "lib"
    (tree / "hakmem").mkdir(parents=True)
    (tree / "libhakmem.so.0").symlink_to(LIBRARY)
    shutil.copytree(FOLDER, tree / "hakmem" / "python", ignore=lambda *_: ["__pycache__"])
    shutil.copy(ROOT / "packaging" / "python" / "hakmem" / "__init__.py", folder / "hakmem")
    return folder


def run(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess:
    (folder / "prog.py").write_text(f"""import os, sys
sys.path.insert(0, {str(folder)!r})
import hakmem
assert hakmem.enable(functions=True)
def named(): pass
named()
map_ = f"/tmp/perf-{{os.getpid()}}.map"
has_name = os.path.exists(map_) and "py::named" in open(map_).read()
if os.fork() == 0:
    print(os.getpid())
    sys.exit()  # by exit: its own map goes, and the parent's stays
os.wait()
print(os.getpid(), has_name and os.path.exists(map_), "_HAKMEM_NAMED" in os.environ)
""", encoding="utf-8")
    return subprocess.run([*command, folder / "prog.py"], env={"PYTHONDONTWRITEBYTECODE": "1", **more}, text=True, timeout=120,
                          capture_output=True, check=False)


@pytest.fixture(params=["3.9", "3.10", "3.11", "3.12", "3.13"])
def python(request) -> str:
    return all_pythons().get(request.param) or pytest.skip(f"no Python {request.param} is installed")


def test_functions_have_names_and_the_map_goes(python, tmp_path):
    done = run(module(tmp_path), python)
    pids = [int(line.split()[0]) for line in done.stdout.splitlines()]
    left = [one for one in (Path(f"/tmp/perf-{pid}.map") for pid in pids) if one.exists()]
    for one in left:
        one.unlink()
    assert len(pids) == 2 and done.stdout.endswith(f"{pids[1]} True False\n") and done.stderr == "" and not left, (done, left)


@pytest.mark.parametrize("version,words,reason", [
    ("3.8", [], "CPython names them from 3.9 on"), ("3.10", ["-S"], "before CPython 3.12 -S hides"),
    ("3.11", ["-I"], "options -E and -I"), ("3.12", ["-E"], "options -E and -I")])
def test_where_there_can_be_no_names_a_warning_says_why(tmp_path, version, words, reason):
    python = all_pythons().get(version) or pytest.skip(f"no Python {version} is installed")
    done = run(module(tmp_path), python, *words)
    assert f"RuntimeWarning: hakmem cannot name functions: {reason}" in done.stderr, done
