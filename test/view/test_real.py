# SPDX-License-Identifier: MIT
"""The library itself on the other side, if it was built and knows the options."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from test_pages import check_alone

from hakmem_view import observer
from hakmem_view.installed import own_version
from hakmem_view.model import Stats, read

LIBRARY = Path(os.environ.get("HAKMEM_LIB") or ROOT / "build" / "release" / "libhakmem.so")
PROGRAM = """
import sys
import tempfile
kept = [bytes(size) for size in range(16, 30000, 24)]
print("ready", flush=True)
sys.stdin.read()
"""


def _knows(*options: str) -> bool:
    if not LIBRARY.exists():
        return False
    said = subprocess.run(["true"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": "help"}).stderr
    return all(f"hakmem: {option}:" in said for option in options)


OBSERVED = pytest.mark.skipif(not LIBRARY.exists() or not observer.PROGRAM.exists() or os.geteuid() != 0 and
                              observer.YAMA.exists() and observer.YAMA.read_text().strip() != "0",
                              reason="no library, or the kernel lets no process read another that is not its child")
REPORT = pytest.mark.skipif(not _knows("report", "report_file"), reason="no library that knows the option report_file")


@pytest.fixture(scope="module")
def process():
    one = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           env={**os.environ, "PYTHONMALLOC": "malloc", "LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": ""})
    try:
        assert one.stdout.readline() == b"ready\n"
        yield one
    finally:
        one.kill()
        one.communicate()


@OBSERVED
@pytest.mark.parametrize("words", [["stats"], ["stats", "--metrics"], ["explain"], ["map"],
                                   ["top", "--once", "--interval", "0.2"]], ids=" ".join)
def test_commands(process, view, words):
    done = view(*words, process.pid)
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) > 5


@OBSERVED
def test_documents_pages_and_lists_are_of_this_process(process, view, tmp_path):
    for command in ("stats", "explain"):
        assert json.loads(view(command, "--json", process.pid).stdout)["pid"] == process.pid
    for command in ("explain", "map"):
        done = view(command, "--html", tmp_path / "page.html", process.pid)
        assert done.returncode == 0, done.stderr
        assert len(check_alone((tmp_path / "page.html").read_text(encoding="utf-8")).rows) > 4
    done = view("ps", width=150)
    assert (done.returncode, done.stderr) == (0, "")
    row = next(line for line in done.stdout.splitlines() if line.split()[:1] == [str(process.pid)])
    assert row.split()[-1] == own_version()


@OBSERVED
def test_free_of_top_is_that_of_its_rows(process):
    stats = read(Stats.of, observer.find(str(process.pid)).document("stats"), "it")
    assert stats.bytes["slab_free"] == sum(row.free * row.bytes for row in stats.classes)


@REPORT
def test_map_of_a_program_at_its_end(view, tmp_path):
    done = view("map", "--html", tmp_path / "page.html", "--lib", LIBRARY, "--", sys.executable, "-c",
                "import sys; sys.exit(9)")
    assert done.returncode == 9, done.stderr
    check_alone((tmp_path / "page.html").read_text(encoding="utf-8"))


def test_launcher_passes_words_on():
    done = subprocess.run([ROOT / "hakmem", "stats", "--json", "0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "hakmem: there is no process 0\n")
