# SPDX-License-Identifier: MIT
"""From addresses to names: by every tool that may be there, with debug data apart, inlined, or none; and never the names
of another file."""
import re
import shutil
import subprocess
from pathlib import Path

import leaky
import pytest

from hakmem_view import observer, symbols
from hakmem_view.elf import Elf
from hakmem_view.profile_model import Mapping

pytestmark = leaky.COMPILER
BEGIN = 0x5000000


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return leaky.compiled(tmp_path_factory.mktemp("symbols"))


def mapped(path, build_id: str = "") -> Mapping:
    return Mapping(BEGIN, BEGIN + 0x100000, 0, str(path), build_id)


def at_leak(program: Path) -> int:
    return BEGIN + leaky.calls(program)["leak_record", "malloc"]


@pytest.mark.parametrize("tool", [*symbols.TOOLS, ""])
def test_function_and_line_by_each_tool(program, monkeypatch, tool):
    if tool and not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    monkeypatch.setattr(symbols, "TOOLS", ("gone", tool) if tool == "addr2line" else (tool,) if tool else ("gone",))
    if tool == "addr2line":
        monkeypatch.setattr(symbols.shutil, "which", lambda name: None if name == "gone" else f"/usr/bin/{name}")
    frames = symbols.names([at_leak(program)], [mapped(program)])[at_leak(program)]
    assert frames[-1].function == "leak_record"
    if tool:
        assert (Path(frames[-1].file).name, frames[-1].line) == ("leaky.c", leaky.line_of("the line of the leak"))


@pytest.mark.parametrize("tool", symbols.TOOLS)
def test_inlined_functions_are_frames_of_their_own(tmp_path, monkeypatch, tool):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    source = tmp_path / "in.c"
    source.write_text("#include <stdlib.h>\nvoid *volatile kept;\nstatic inline __attribute__((always_inline)) void inner(void) {\n"
                      "    kept = malloc(9);\n}\n__attribute__((noinline)) void outer(void) {\n    inner();\n    kept = 0;\n}\n"
                      "int main(void) {\n    outer();\n    return 0;\n}\n", encoding="utf-8")
    subprocess.run(["cc", *leaky.FLAGS, "-o", tmp_path / "in", source], check=True)
    monkeypatch.setattr(symbols, "TOOLS", (tool,) if tool == symbols.TOOLS[0] else ("gone-tool", tool))
    address = BEGIN + leaky.calls(tmp_path / "in")["outer", "malloc"]
    frames = symbols.names([address], [mapped(tmp_path / "in")])[address]
    assert [(one.function, one.line, one.is_inlined) for one in frames] == [("inner", 4, True), ("outer", 7, False)]


@pytest.mark.parametrize("by", ["link", "build id"])
def test_debug_data_apart_is_found(program, tmp_path, monkeypatch, by):
    build, stripped = Elf.open(str(program)).build_id, tmp_path / "leaky"
    debug = {"link": tmp_path / ".debug" / "leaky.debug",
             "build id": tmp_path / "debug" / ".build-id" / build[:2] / f"{build[2:]}.debug"}[by]
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-all", "-o", stripped, program], check=True)
    address = at_leak(program)
    assert symbols.names([address], [mapped(stripped)])[address][0].function != "leak_record"
    if by == "link":
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", stripped], check=True)
    monkeypatch.setattr(symbols, "DEBUG", tmp_path / "debug")
    frame = symbols.names([address], [mapped(stripped)])[address][-1]
    assert (frame.function, frame.line) == ("leak_record", leaky.line_of("the line of the leak"))


def test_another_build_of_the_file_gives_no_names(program):
    address = at_leak(program)
    assert symbols.names([address], [mapped(program, "00" * 20)])[address] == symbols.UNKNOWN
    assert symbols.names([address], [mapped(program, Elf.open(str(program)).build_id)])[address] != symbols.UNKNOWN


def test_everything_that_is_missing_gives_no_names(tmp_path):
    (tmp_path / "text").write_text("no program" * 100, encoding="utf-8")
    wanted = [0, 1, BEGIN, BEGIN + 1, BEGIN + 0x100000, BEGIN + 0x100001, (1 << 64) - 1]
    for path in ("", "[vdso]", "/gone/file", str(tmp_path), str(tmp_path / "text"), "relative"):
        found = symbols.names(wanted, [mapped(path)])
        assert found == {address: symbols.UNKNOWN for address in wanted}
    assert symbols.names([], []) == {} and symbols.names([7], []) == {7: symbols.UNKNOWN}


def test_names_of_rust_in_its_older_form():
    mangled = "_$LT$u8$u20$as$u20$alloc..vec..spec_from_elem..SpecFromElem$GT$::from_elem::h0123456789abcdef"
    assert symbols._clean(mangled) == "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"
    assert symbols._clean("leaky::main::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef") == "leaky::main::_{{closure}}"
    assert symbols._clean("f(int, ...)") == "f(int, ...)" and symbols._clean("??") == ""


def test_words_of_the_tools_that_are_none_are_left_out():
    assert symbols._read_json('{"Address":"0x1","Symbol":[{"FunctionName":"","FileName":"","Line":0}]}\nno\n{}\n[1]\n') == {
        1: symbols.UNKNOWN}
    assert symbols._read_addr2line("0x0000000000000001\n??\n??:0\n0x2\nf\n/a:b.c:12 (discriminator 3)\ng\nx.c:?\n") == {
        1: symbols.UNKNOWN, 2: [symbols.Frame("f", "/a:b.c", 12, True), symbols.Frame("g", "x.c", 0, False)]}


def test_files_that_are_cut_or_wrong_have_nothing(tmp_path):
    data = leaky.compiled(tmp_path).read_bytes()
    for name, content in {"cut": data[:len(data) // 2], "head": data[:70], "text": b"x" * 5000, "empty": b"",
                          "wild": data[:40] + b"\xff" * 8 + data[48:], "many": data[:60] + b"\xff\xff" + data[62:],
                          "links": data[:62] + b"\xff\xff" + data[64:]}.items():
        (tmp_path / name).write_bytes(content)
        found = Elf.open(str(tmp_path / name))
        if found is not None:
            list(found.symbols()), found.segments, found.build_id, found.debug_link, found.soname, found.needed
            assert found.address(5) >= 0 and found.offset(1 << 60) == -1 and found.names(re.compile(b"malloc")) is not None
        assert observer.library_version(str(tmp_path / name)) == "", name
