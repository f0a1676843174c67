# SPDX-License-Identifier: MIT
"""Functions that were made at run time: from a map file as CPython and others write it to names, lines and reports."""
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import synthetic
from synthetic import Load, Truth

from hakmem_view import installed, own_program, perf_map, profile_command, profile_pprof, python_lines
from hakmem_view.profile_model import difference, profile
from hakmem_view.profile_names import Named
from hakmem_view.symbols import Frame

CODE = 0x7f0000000000  # nothing is mapped there
MAPPED = 0x5000000
SOURCE = '''import functools
def plain(): pass
class Shop:
    @functools.cache
    def open(self, each=lambda: 1):
        def inner():
            return (one for one in "12")
        return inner, [lambda: 2]
    @property
    def twice(self): pass
    @twice.setter
    def twice(self, value): pass
async def later():
    class Local:
        def method(self): pass
'''


@pytest.fixture
def map_of():
    """map_of(pid, text) writes the file; it is gone at the end."""
    made = []

    def write(pid: int, text: str) -> Path:
        path = Path(f"/tmp/perf-{pid}.map")
        path.write_text(text, encoding="utf-8")
        made.append(path)
        return path
    yield write
    for path in made:
        path.unlink(missing_ok=True)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "shop.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def gone() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_code_made_at_run_time_is_named_by_its_map(map_of):
    map_of(os.getpid(), "7000 100 Lazy:handler web.js:3\nnonsense\n8000 zz x\n7100 10 two words\n")
    found = perf_map.names(perf_map.of_process(os.getpid()), [0x7001, 0x7100, 0x7101, 0x7111, 0x9000], os.getpid())
    assert found == {0x7001: Frame("Lazy:handler web.js:3", "", 0, False), 0x7100: Frame("Lazy:handler web.js:3", "", 0, False),
                     0x7101: Frame("two words", "", 0, False)}


def test_lines_are_those_of_def(source):
    found = python_lines.lines(str(source))
    wanted = {"<module>": 1, "plain": 2, "Shop": 3, "Shop.open": 5, "Shop.<lambda>": 5, "Shop.open.<locals>.inner": 6,
              "Shop.open.<locals>.inner.<locals>.<genexpr>": 7, "Shop.open.<locals>.<lambda>": 8, "Shop.twice": 0, "later": 13,
              "later.<locals>.Local": 14, "later.<locals>.Local.method": 15}
    assert found == wanted
    names: dict[str, int] = {}

    def look(code) -> None:
        names[code.co_qualname] = code.co_firstlineno
        for one in code.co_consts:
            if hasattr(one, "co_qualname"):
                look(one)
    look(compile(SOURCE, "shop.py", "exec"))
    assert set(names) == set(wanted), "as CPython calls them"


def test_files_that_are_no_python_have_no_lines(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "other.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "deep.py").write_text("(" * 5000 + "lambda: 1", encoding="utf-8")
    (tmp_path / "zero.py").write_bytes(b"a\0b")
    for name in ("fifo", "other.py", "deep.py", "zero.py", "gone.py"):
        assert python_lines.lines(str(tmp_path / name)) == {}
    assert perf_map.frame(f"py::f:{tmp_path}/gone.py") == Frame("f", f"{tmp_path}/gone.py", 0, False, True)
    assert perf_map.frame("py::f:<string>") == Frame("f", "<string>", 0, False, True)
    assert perf_map.frame("py::odd") == Frame("py::odd", "", 0, False)


def test_maps_of_others_are_not_believed(map_of, tmp_path, monkeypatch):
    pid = gone()
    path = map_of(pid, f"{CODE:x} 10 py::f:/x.py\n")
    assert len(perf_map.of_ended(pid, time.time(), False)) == 1
    os.utime(path, (1, 1))  # of an earlier process with this number
    assert perf_map.of_ended(pid, time.time(), True) == [] and path.exists()
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text(f"{CODE:x} 10 py::f:/x.py\n", encoding="utf-8")
    assert perf_map.of_ended(pid, time.time(), True) == []
    path.unlink()
    map_of(pid, f"{CODE:x} 10 py::f:/x.py\n")
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert perf_map.of_ended(pid, time.time(), True) == []


def test_only_maps_that_we_asked_for_are_removed(map_of):
    pid = gone()
    path = map_of(pid, f"{CODE:x} 10 Lazy:handler web.js:3\n")
    assert perf_map.of_ended(pid, time.time(), True) and path.exists(), "a map of another compiler"
    map_of(pid, f"{CODE:x} 10 py::f:/x.py\n")
    assert perf_map.of_ended(pid, time.time(), False) and path.exists(), "a map that the user asked for"
    assert perf_map.of_ended(pid, time.time(), True) and not path.exists()


def test_python_is_asked_for_maps_unless_its_user_was_first(tmp_path, monkeypatch):
    for name in (perf_map.MAPS, perf_map.SMALL, perf_map.SEARCH):
        monkeypatch.delenv(name, raising=False)
    search = {perf_map.SEARCH: str(installed.PYTHON)}
    script = tmp_path / "serve"
    for first, is_python in (("#!/usr/bin/env python3", True), ("#! /opt/python3.12 -u", True), ("#!/bin/sh", False), ("", False)):
        script.write_text(f"{first}\npython3\n", encoding="utf-8")
        assert bool(perf_map.wish([str(script)])) is is_python, first
    python = tmp_path / "python3.13"
    python.write_text("#!/bin/sh\n", encoding="utf-8")
    python.chmod(0o755)
    both = {perf_map.MAPS: "1", perf_map.SMALL: "malloc", **search}
    assert perf_map.wish([str(python), "x.py"]) == both and perf_map.wish(["/gone/python3"]) == both
    assert perf_map.wish(["sh", "python3"]) == {} == perf_map.wish(["/gone/pythonesque"])
    assert perf_map.wish([str(python), "-X", "perf", "x.py"]) == {perf_map.SMALL: "malloc", **search} == \
        perf_map.wish([str(python), "-Xperf", "x.py"])
    (tmp_path / "python3.13t").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "python").symlink_to("python3.13t")
    assert perf_map.wish([str(tmp_path / "python")]) == {perf_map.MAPS: "1", **search}, "it has no other allocator"
    monkeypatch.setenv(perf_map.SEARCH, "/theirs")
    assert perf_map.wish([str(python)])[perf_map.SEARCH] == f"{installed.PYTHON}:/theirs"
    monkeypatch.setenv(perf_map.MAPS, "1")
    assert perf_map.wish([str(python)]).keys() == {perf_map.SMALL, perf_map.SEARCH}
    monkeypatch.setenv(perf_map.MAPS, "0")
    assert perf_map.wish([str(python)]) == {perf_map.SMALL: "malloc"}


@pytest.mark.parametrize("words,refusal", [
    (["-I", "x.py"], "-I"), (["-sE", "x.py"], "-E"), (["-W", "-E", "x.py"], ""), (["-WE", "-X", "dev", "-uI"], "-I"),
    (["x.py", "-E"], ""), (["-c", "pass", "-E"], ""), (["-mI"], ""), (["--check-hash-based-pycs", "never", "-E"], "-E"),
    (["--", "-E"], ""), (["-", "-E"], ""), (["-S", "x.py"], "")])
def test_options_by_which_python_reads_no_variables_are_known(words, refusal, tmp_path):
    assert perf_map.refusal(["/gone/python3", *words]) == refusal
    assert bool(perf_map.wish(["/gone/python3", *words])) is not bool(refusal)
    script = tmp_path / "serve"
    script.write_text("#!/usr/bin/python3 " + " ".join(words), encoding="utf-8")
    if words[0] not in ("x.py", "--", "-"):
        assert perf_map.refusal([str(script), "-E"]) == refusal
    assert perf_map.refusal(["sh", *words]) == ""


def test_silence_has_a_reason(monkeypatch):
    asked, rows = {perf_map.MAPS: "1"}, [(CODE, 1, "py::f:/x.py")]
    assert perf_map.silence(["python3", "x.py"], asked, rows) == "" == perf_map.silence(["python3", "x.py"], {}, [])
    assert "from 3.9 on" in perf_map.silence(["python3", "x.py"], asked, [])
    assert perf_map.silence(["python3", "-uS", "x.py"], asked, [(CODE, 1, "Lazy:f")]).endswith("-S hides what names functions")
    monkeypatch.setattr(installed, "PYTHON", Path("/a:b/python"))
    assert "colon hides what names functions: /a:b/python" in perf_map.silence(["python3", "x.py"], asked, [])


def test_names_of_older_pythons_are_made_whole_by_their_first_line(source):
    """They have no qualified names; a decorator is the first line."""
    def found(row: str) -> Frame:
        return perf_map.frame(f"py::{row}:{source}")
    for row, name, line in (("open@4", "Shop.open", 5), ("inner@6", "Shop.open.<locals>.inner", 6), ("twice@9", "Shop.twice", 10),
                            ("twice@11", "Shop.twice", 12), ("<module>@1", "<module>", 1),
                            ("<genexpr>@7", "Shop.open.<locals>.inner.<locals>.<genexpr>", 7), ("plain@3", "plain", 3)):
        assert found(row) == Frame(name, str(source), line, False, True), row
    assert perf_map.frame("py::f@7:/gone.py") == Frame("f", "/gone.py", 7, False, True)


# --- in reports -----------------------------------------------------------------------------------------


def document(shift: int = 0) -> dict:
    """Three sites: of Python alone, of a module of it, and of its start; `shift`: of addresses."""
    py, native, module = CODE + shift + 1, MAPPED + 0x100, MAPPED + 0x200100
    found = synthetic.document(Load([Truth([native, py, native + 8, py + 0x10], 1008, 8000),
                                     Truth([module, native, py, native, py + 0x10], 512, 4000),
                                     Truth([native, native + 8], 320, 2000)]))
    found["mappings"] = [{"start": f"{start:#x}", "end": f"{start + 0x100000:#x}", "offset": "0x0", "path": path, "build_id": ""}
                         for start, path in ((MAPPED, "/gone/libpython3.13.so.1.0"), (MAPPED + 0x200000, "/gone/_fast.so"))]
    for site, stack in zip(found["sites"], ([native, py, native + 8, py + 0x10], [module, native, py, native, py + 0x10],
                                            [native, native + 8])):
        site["stack"] = [f"{address:#x}" for address in stack]
    return found


def named(source, shift: int = 0) -> tuple[Named, profile_command.Shot]:
    rows = perf_map.parse(f"{CODE + shift:x} b py::Shop.open:{source}\n{CODE + shift + 0x10:x} b py::<module>:{source}\n")
    shot = profile_command.shot(json.dumps(document(shift)).encode(), "it")
    with_code = profile_command.with_code(shot, perf_map.names(rows, shot.found.addresses))
    return Named(with_code.found, 0, None, False), with_code


def test_sites_are_named_by_functions_of_python(source):
    found, _ = named(source)
    python, module, start = found.profile.sites
    assert found.where(python) == "Shop.open at shop.py:5" and found.chain(python) == ["<module>"]
    assert [frame.function for frame, _ in found.stack(python)] == ["Shop.open", "<module>"], "the interpreter is left out"
    assert found.where(module) == "Shop.open at shop.py:5", "the module has no lines"
    assert [name for _, name in found.stack(module)] == ["_fast.so", "python", "python"]
    assert found.where(start).startswith("libpython3.13.so.1.0+0x"), "no function of Python is known"


def test_memory_without_a_file_has_names_of_run_time(source, map_of):
    """The library lists all mappings of code, also those that trampolines of a running process lie in."""
    map_of(os.getpid(), f"{CODE:x} b py::Shop.open:{source}\n{CODE + 0x10:x} b py::<module>:{source}\n")
    whole = document()
    whole["mappings"].append({"start": f"{CODE:#x}", "end": f"{CODE + 0x10000:#x}", "offset": "0x0", "path": "", "build_id": ""})
    found = Named(profile(whole, "it"), os.getpid())
    assert found.where(found.profile.sites[0]) == "Shop.open at shop.py:5"


def test_standard_library_and_frozen_modules_are_never_the_place():
    for file in ("<frozen importlib._bootstrap>", "/usr/lib/python3.13/json/decoder.py", "/v/lib64/python3.12/queue.py"):
        assert perf_map.is_library(Frame("f", file, 1, False, True)), file
    for file in ("/v/lib/python3.13/site-packages/x.py", "/usr/lib/python3/dist-packages/x.py", "/home/python3.11/x.py", "x.py"):
        assert not perf_map.is_library(Frame("f", file, 1, False, True)), file
    assert perf_map.is_interpreter("python3.13", "/usr/bin/python3.13")
    assert perf_map.is_interpreter("_json.so", "/usr/lib/python3.13/lib-dynload/_json.so")
    assert not perf_map.is_interpreter("_fast.so", "/v/lib/python3.13/site-packages/_fast.so")


def test_stored_profile_keeps_the_names(source, tmp_path):
    found, shot = named(source)
    again = profile(json.loads(shot.body), "it")
    assert again.code == found.profile.code and again.code[CODE + 1].line == 5
    source.unlink()
    assert Named(again, 0, None, False).where(again.sites[0]) == "Shop.open at shop.py:5"
    assert profile_command.with_code(shot, again.code) is shot


def test_difference_knows_functions_of_another_run(source):
    """They lie elsewhere there."""
    old, new = named(source)[1].found, named(source, 0x5000)[1].found
    assert {old.key(site) for site in old.sites} == {new.key(site) for site in new.sites}
    new.sites = new.sites[1:]
    last = difference(old, new)[-1]
    assert last.bytes < 0 and last.site.stack[1] == CODE + 0x5001


def test_pprof_has_lines_and_no_interpreter(source):
    message = profile_pprof.message()()
    message.ParseFromString(gzip.decompress(profile_pprof.encode(named(source)[0])))
    first = message.sample[0].location_id
    places = {one.id: one for one in message.location}
    functions = {one.id: message.string_table[one.name] for one in message.function}
    assert [(functions[places[one].line[0].function_id], places[one].line[0].line) for one in first] == [
        ("Shop.open", 5), ("<module>", 1)]


def test_program_is_run_with_the_wish(tmp_path, map_of, monkeypatch):
    """The launcher is a fake, which leaves a report and a map."""
    launcher = tmp_path / "hakmem"
    launcher.write_text(f"#!/bin/sh\nfile=${{HAKMEM_OPTIONS##*report_file:}}\necho {{}} >\"${{file%%%p}}$$\"\n"
                        f"echo \"{CODE:x} b py::f:/x.py\" >/tmp/perf-$$.map\nexec env >{tmp_path}/env\n", encoding="utf-8")
    launcher.chmod(0o755)
    monkeypatch.setattr(own_program, "LAUNCHER", str(launcher))
    ended = own_program.run([sys.executable], [], "profile", "", {perf_map.MAPS: "1"})
    assert ended.report == b"{}\n" and ended.code == [(CODE, 0xb, "py::f:/x.py")]
    assert "PYTHONPERFSUPPORT=1\n" in (tmp_path / "env").read_text(encoding="utf-8")
    assert not Path(f"/tmp/perf-{ended.pid}.map").exists()
    ended = own_program.run([sys.executable], [], "profile")
    left = Path(f"/tmp/perf-{ended.pid}.map")
    assert ended.code and left.exists()
    left.unlink()
