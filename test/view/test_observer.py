# SPDX-License-Identifier: MIT
"""What is read from outside: processes that were started without any option, static ones, those in containers, core files; and
one clear line, with what to do, where there is nothing to read."""
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT, TOOL
from test_real import LIBRARY, OBSERVED, PROGRAM

from hakmem_view import observer, process
from hakmem_view.errors import Closed, ViewError
from hakmem_view.installed import own_version
from hakmem_view.model import Stats, read

sys.path.append(str(ROOT / "test" / "observe"))
import core_file  # noqa: E402 - beside the observer's own tests

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else, or make namespaces")
STATIC = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *volatile kept = malloc(100000);
    puts("ready");
    fflush(stdout);
    return getchar() == EOF && kept == NULL;
}
"""


@pytest.fixture
def started():
    """started(words) → the process, once it has printed "ready"."""
    running = []

    def start(words: list, **environment: str) -> subprocess.Popen:
        one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env={**os.environ, "PYTHONMALLOC": "malloc", "HAKMEM_OPTIONS": "", **environment})
        running.append(one)
        assert one.stdout.readline() == b"ready\n"
        return one
    yield start
    for one in running:
        one.stdin.close()
        one.stdout.read()  # to its end, also where it is the child of another
        one.wait()


@pytest.fixture
def python(started):
    return started([sys.executable, "-c", PROGRAM], LD_PRELOAD=str(LIBRARY))


def failure(text: str, pid: int) -> str:
    return str(observer._failure(text, pid))  # pylint: disable=protected-access


@OBSERVED
def test_statistics_come_again_and_again_from_one_observer(python):
    with observer.Watch(observer.find(str(python.pid)), 0.1) as watch:
        first, second = (read(Stats.of, watch.next(), "it") for _ in range(2))
        assert first.pid == second.pid == python.pid and first.bytes["live"] > 1 << 20
        assert watch.next(0.0) is None  # there is none yet
        python.stdin.close()
        python.wait()
        with pytest.raises(Closed, match=f"process {python.pid} has ended"):
            while True:
                watch.next()


@OBSERVED
def test_processes_are_listed(python, view):
    plain = subprocess.run([sys.executable, "-S", TOOL, "ps"], capture_output=True, text=True, check=True).stdout
    row = next(line for line in plain.splitlines() if line.split()[0] == str(python.pid))
    assert row.split()[-1] == own_version()
    done = view("ps", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads((ROOT / "docs" / "schema" / "ps.schema.json").read_text(encoding="utf-8")))
    mine = next(one for one in found["processes"] if one["pid"] == python.pid)
    assert mine["hakmem"] == own_version() and mine["reason"] == "" and mine["rss_bytes"] > 0
    assert os.getpid() not in [one["pid"] for one in found["processes"]] or process.has_library(os.getpid())


@OBSERVED
@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_static_program_without_symbols(started, view, tmp_path):
    archive = Path(os.environ.get("HAKMEM_ARCHIVE") or LIBRARY.parent / "libhakmem.a")
    (tmp_path / "program.c").write_text(STATIC, encoding="utf-8")
    subprocess.run(["cc", "-static", "-s", "-Wl,--eh-frame-hdr", "-o", tmp_path / "program", tmp_path / "program.c", archive], check=True)
    one = started([tmp_path / "program"], LD_PRELOAD="")
    assert json.loads(view("stats", "--json", one.pid).stdout)["bytes"]["live"] >= 0
    assert one.pid in [listed.pid for listed in observer.all_processes()]


@OBSERVED
@AS_ROOT
@pytest.mark.skipif(shutil.which("unshare") is None or subprocess.run(["unshare", "-pmf", "true"], check=False,
                                                                      capture_output=True).returncode != 0,
                    reason="no namespaces can be made here")
def test_process_in_other_namespaces(started, view, tmp_path):
    """As in a container: its PID is another there, and its library lies in no folder of ours."""
    inside = f'mount -t tmpfs none "$0" && cp -L "{LIBRARY}" "$0/libhakmem.so" && LD_PRELOAD="$0/libhakmem.so" exec "$@"'
    one = started(["unshare", "-pmf", "sh", "-c", inside, tmp_path, sys.executable, "-c", PROGRAM], LD_PRELOAD="")
    pid = int(Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text(encoding="ascii"))
    assert f"NSpid:\t{pid}\t1\n" in Path(f"/proc/{pid}/status").read_text(encoding="utf-8") and not list(tmp_path.iterdir())
    for words in (["stats"], ["explain"], ["map"], ["top", "--once", "--interval", "0.1"]):
        done = view(*words, pid)
        assert (done.returncode, done.stderr) == (0, "") and str(pid) in done.stdout
    assert pid in [listed.pid for listed in observer.all_processes()]


@OBSERVED
def test_core_file_is_taken_wherever_a_process_is(python, view, refuses, tmp_path):
    core = tmp_path / "core"
    core_file.write(python.pid, core)
    live = {verb: json.loads(view(verb, "--json", python.pid).stdout) for verb in ("stats", "explain")}
    for verb, document in live.items():
        found = json.loads(view(verb, "--json", core).stdout)
        assert found["pid"] == python.pid and found["hakmem"] == document["hakmem"]
    assert json.loads(view("stats", "--json", core).stdout)["bytes"] == live["stats"]["bytes"]
    for verb in ("stats", "explain", "map"):
        done = view(verb, core, width=200)
        assert (done.returncode, done.stderr) == (0, "") and f"core file {core}" in done.stdout
    view("map", "--html", tmp_path / "page.html", core)
    assert f"core file {core}" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"core file {core} does not change" in refuses("top", "--once", core)
    (tmp_path / "1").write_text("a number is a PID, whatever files there are", encoding="utf-8")
    done = subprocess.run([sys.executable, TOOL, "stats", "--json", str(python.pid)], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout)["pid"] == python.pid
    assert "is no core file" in refuses("explain", tmp_path / "1")


# --- what cannot be read --------------------------------------------------------------------------


@OBSERVED
@AS_ROOT
def test_process_of_another_user(python, as_nobody, tmp_path):
    program = tmp_path / "hakmem-observe"
    shutil.copy(observer.PROGRAM, program)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            os.chmod(folder, 0o755 | folder.stat().st_mode)
    said = as_nobody("from hakmem_view import observer", f"observer.PROGRAM = {str(program)!r}; "
                     f"observer.find('{python.pid}').read('explain')")
    assert said == f"{process.called(python.pid)} cannot be looked into: only user root and root may: use sudo\n"


@pytest.mark.parametrize("user, scope, said", [
    (0, "1", "root lacks CAP_SYS_PTRACE here"), (None, "1", "use sudo, or start it with HAKMEM_OPTIONS=observable:1"),
    (None, "0", "only root may, as it is set-uid"), (None, "", "only root may, as it is set-uid"), (4711, "1", "and root may: use sudo")])
def test_permission_says_what_to_do(monkeypatch, tmp_path, user, scope, said):
    """None: the user of the process, who is not root."""
    monkeypatch.setattr(observer, "YAMA", tmp_path / "scope")
    if scope:
        (tmp_path / "scope").write_text(f"{scope}\n", encoding="ascii")
    monkeypatch.setattr(observer.process, "owner", lambda pid: 1000)
    monkeypatch.setattr(observer.os, "geteuid", lambda: 1000 if user is None else user)
    text = failure(f"the memory of process {os.getpid()} may not be read", os.getpid())
    assert text.startswith(f"{process.called(os.getpid())} cannot be looked into: ") and said in text


def test_program_of_32_bits(tmp_path):
    """It pauses: an ELF header, a segment, and three instructions."""
    code = b"\xb8\x1d\0\0\0\xcd\x80\xeb\xf7"
    size = 52 + 32 + len(code)
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, 0x8048000 + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    (tmp_path / "small").write_bytes(head + struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, size, size, 5, 4096) + code)
    (tmp_path / "small").chmod(0o755)
    try:
        one = subprocess.Popen([tmp_path / "small"])
    except OSError:
        pytest.skip("programs of 32 bits do not run here")
    try:
        assert failure("the process does not use hakmem", one.pid).endswith("is a program of 32 bits, which hakmem does not serve")
    finally:
        one.kill()
        one.wait()


def test_other_refusals_are_told_with_what_to_do(program, refuses):
    assert "does not run on hakmem; start it by ./hakmem run -- PROGRAM" in refuses("explain", program("nothing").pid)
    said = refuses("stats", program("older").pid)
    assert "has hakmem with description 77" in said and "use the ./hakmem that belongs to that library" in said
    assert "cannot be looked into" in refuses("map", program("forbidden").pid)
    assert failure("there is no process 999999999", 999999999) == "there is no process 999999999"


def test_observer_that_is_missing_or_no_program(program, refuses, monkeypatch, tmp_path):
    one = program()
    monkeypatch.setattr(observer, "PROGRAM", tmp_path / "gone")
    assert "gone is missing: `./hakmem build` makes it" in refuses("stats", one.pid)
    (tmp_path / "gone").write_text("nothing to run", encoding="ascii")
    assert "cannot start" in refuses("stats", one.pid)


def test_list_goes_on_where_one_cannot_be_read_in_time(program):
    """As where a page of a file that nobody serves holds up who reads it."""
    stuck, other = program("stuck"), program()
    found = {one.pid: one for one in observer.all_processes(seconds=0.2)}
    assert found[stuck.pid].reason.endswith("could not be read within 0.2 s") and other.pid in found


def test_document_that_is_too_large(program, monkeypatch):
    monkeypatch.setattr(observer, "MOST_BYTES", 1 << 10)
    one = program()
    with pytest.raises(ViewError, match="has more than 0 MiB"):
        observer.find(str(one.pid)).read("map")
