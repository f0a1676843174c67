# SPDX-License-Identifier: MIT
"""Planted leaks in Python programs are named at function and line by the real library: of Pythons that name functions
themselves, and of older ones."""
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import leaky
import pytest
from test_profile_real import at_end, first_row, most_on_page  # noqa: F401  (a fixture)
from test_python_names import FOLDER, SYSTEM, older_pythons
from test_real import LIBRARY, _knows

pytestmark = pytest.mark.skipif(not _knows("profile_rate"), reason="no library that knows the option profile_rate")


@lru_cache(maxsize=1)
def python_with_maps() -> str:
    """The newest Python here that writes perf maps (3.12 and later); skips if there is none."""
    homes = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin/python3")
    found = {}
    for one in {*filter(None, (shutil.which(f"python3{minor}") for minor in ("", ".12", ".13", ".14", ".15"))), *map(str, homes)}:
        asked = subprocess.run([one, "-X", "perf", "-c", "import os, sys; print(sys.version_info[1]) if "
                                "sys.is_stack_trampoline_active() else 0; os.unlink(f'/tmp/perf-{os.getpid()}.map')"],
                               capture_output=True, text=True, timeout=60, check=False)
        if asked.returncode == 0 and asked.stdout:
            found[int(asked.stdout)] = one
    return found[max(found)] if found else ""


@pytest.fixture(params=["system", "own maps", "3.9", "3.10", "3.11"])
def python(request) -> str:
    """The system's, the newest with maps of its own, and older ones, whose functions tools/hakmem_python names."""
    if request.param == "own maps":
        return python_with_maps() or pytest.skip("no Python from 3.12 on, which has perf maps, is installed")
    if request.param != "system":
        return older_pythons().get(request.param) or pytest.skip(f"no Python {request.param} is installed")
    return SYSTEM


@pytest.mark.parametrize("option, column, function, words, rate", [
    ("--leaks", "In use", "remember", "the line of the leak", "64k"),
    ("--pinned", "Pinned", "Shop.open_session", "the line of the pinned blocks", "4k")])
def test_what_python_holds_is_named_at_function_and_line(at_end, tmp_path, python, option, column,
                                                         function, words,
                                                         rate):
    text, found, _ = at_end([option], python, leaky.PROGRAMS / "leaky.py", 32, rate=rate)
    wanted = f"{function} at leaky.py:{leaky.line_of(words, 'leaky.py')}"
    assert wanted in first_row(text) and most_on_page(tmp_path, column) == wanted, text
    if option == "--leaks":
        assert "  < main < <module>" in first_row(text)
        assert max(site.inuse.bytes for site in found.sites) == pytest.approx(33 << 20, rel=0.35)
        assert abs(found.estimate - found.exact_bytes) < 2 * found.error
    else:
        assert (5 << 20) < max(site.pinned for site in found.sites) < (48 << 20)
    assert not list(Path("/tmp").glob(f"perf-{found.pid}.map"))


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_python_that_reads_no_variables_says_so(view, option):
    done = view("profile", "--lib", LIBRARY, "--", SYSTEM, option, leaky.PROGRAMS / "leaky.py", 1, timeout=120)
    assert done.returncode == 0, done
    assert f"{option} reads no variables" in done.stderr if option != "-S" else "-S hides what names" in done.stderr, done.stderr


def test_growth_of_python_without_maps_is_named_in_its_interpreter(at_end, monkeypatch):
    monkeypatch.setenv("PYTHONPERFSUPPORT", "0")
    text, found, _ = at_end(["--leaks"], SYSTEM, leaky.PROGRAMS / "leaky.py", 32)
    most = max(found.sites, key=lambda site: site.inuse.bytes)
    assert most.inuse.bytes == pytest.approx(32 << 20, rel=0.35)
    modules = [mapping.name for address in most.stack if (mapping := found.mapping(address))]
    assert any("python" in name for name in modules), modules
    assert re.search(r"[Pp]y", first_row(text)), text


@pytest.fixture
def waiting(tmp_path):
    """waiting(python) → it has leaked, and waits; started with the variables that the page names."""
    started = []

    def start(python: str) -> subprocess.Popen:
        (tmp_path / "waits.py").write_text("import sys\nkept = []\ndef remember():\n    kept.append(bytes(1000))\n"
                                           "for _ in range(20000): remember()\nprint('ready', flush=True)\nsys.stdin.read()\n")
        variables = {"LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": "profile_rate:16k", "PYTHONPERFSUPPORT": "1",
                     "PYTHONMALLOC": "malloc", "PYTHONPATH": str(FOLDER)}
        started.append(subprocess.Popen([python, tmp_path / "waits.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **variables}))
        assert started[0].stdout.readline() == b"ready\n"
        return started[0]
    yield start
    for one in started:
        try:
            one.communicate()
        finally:
            one.kill()
            one.wait()
            Path(f"/tmp/perf-{one.pid}.map").unlink(missing_ok=True)


def test_running_python_is_named_by_its_map(view, tmp_path, waiting, python):
    """Its trampolines lie in memory without a file, which the profile lists, too."""
    one = waiting(python)
    done = view("profile", "--seconds", "0", "--json", tmp_path / "p.json", one.pid)
    shown = view("profile", tmp_path / "p.json", width=150)
    assert done.returncode == shown.returncode == 0, (done, shown)
    assert "remember at waits.py:3" in first_row(shown.stdout), shown.stdout
