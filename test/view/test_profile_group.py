# SPDX-License-Identifier: MIT
"""Sums by function and line, what of a profile is looked at, threads by name: of stacks whose functions are made up."""
import dataclasses
import gzip
import math
import re

import pytest
import synthetic
from conftest import ROOT
from synthetic import BEGIN, OFFSET, Load, Truth

from hakmem_view import profile_command, profile_list, profile_pprof, profile_report
from hakmem_view.errors import ViewError
from hakmem_view.profile_group import Row, brief, grouped
from hakmem_view.profile_model import profile
from hakmem_view.profile_names import Choice, Named, suppressions

CODE = {0x1000: ("alloc::raw_vec::RawVec<T,A>::grow_one", "raw_vec.rs", 7), 0x1100: ("cache::put", "cache.rs", 10),
        0x1110: ("cache::put", "cache.rs", 20), 0x1200: ("parse(char const*)", "parse.cc", 5), 0x2100: ("serve", "main.rs", 30),
        0x2200: ("std::vec::from_iter", "vec.rs", 3), 0x3100: ("main", "main.rs", 1)}


def named(sites: list[Truth], choice: Choice = Choice(), threads=(), **more) -> Named:
    code = [{"address": hex(BEGIN + offset - OFFSET), "function": name, "file": file, "line": line}
            for offset, (name, file, line) in CODE.items()]
    document = synthetic.document(Load(sites, extra={"code": code, "threads": list(threads)}, **more))
    return Named(profile(document, "it"), has_symbols=False, choice=choice)


def standard(**more) -> Named:
    """`put` has two lines and is called in two ways; `parse` calls itself."""
    return named([Truth([0x1000, 0x1100, 0x2100, 0x3100], 1 << 20, 8), Truth([0x1110, 0x2200, 0x2100, 0x3100], 1 << 20, 4),
                  Truth([0x1100, 0x3100], 4096, 5000, thread=2), Truth([0x1200, 0x1200, 0x2100, 0x3100], 1 << 20, 16, thread=3)], **more)


def made(found: Named, mode: str = "inuse", **more) -> profile_report.Report:
    return profile_report.make(found, "it", mode, **more)


def rows(report: profile_report.Report, *columns: str) -> dict[str, tuple[str, ...]]:
    return {row.where: tuple(row.cells[report.columns.index(name)] for name in columns) for row in report.rows}


@pytest.mark.parametrize("by, first, second", [
    ("function", ("cache::put in cache.rs", "31.", "31."), ("parse at parse.cc:5", "16.0 MiB", "16.0 MiB")),
    ("line", ("cache::put at cache.rs:10", "27.", "27."), ("parse at parse.cc:5", "16.0 MiB", "16.0 MiB")),
    ("stack", ("cache::put at cache.rs:10", "19.", ""), ("parse at parse.cc:5", "16.0 MiB", ""))])
def test_bytes_of_a_function_are_one_sum(by, first, second):
    report = made(standard(), by=by)
    has_calls = "With calls" in report.columns
    assert has_calls == (by != "stack") and ("p99" in report.columns) == (by == "stack")
    for row, (where, inuse, calls) in zip(report.rows, (first, second)):
        assert row.where == where and row.cells[0].startswith(inuse), row
        assert not has_calls or row.cells[2].startswith(calls), row


def test_functions_that_only_call_come_last_with_what_they_call():
    report = made(standard())
    assert report.title == "Functions by bytes in use"
    found = rows(report, "In use", "With calls", "Objects")
    assert list(found)[2:] == ["main at main.rs:1", "serve at main.rs:30"]  # none of the standard library
    assert found["serve at main.rs:30"] == ("–", "28.0 MiB", "–") and found["main at main.rs:1"][1] == "47.5 MiB"
    assert report.rows[0].callers == ["main"] and report.rows[0].stacks == 3
    assert made(standard(), most=1).left == "1 more function, 16.0 MiB together"


def test_error_of_a_sum_is_not_the_sum_of_errors():
    found = named([Truth([0x1100 + 16 * (at % 2), 0x2100], 4096, 4000) for at in range(4)])
    row = made(found).rows[0]
    assert row.site.error == pytest.approx(math.sqrt(sum(site.error ** 2 for site in found.profile.sites)))
    assert row.site.inuse.bytes == pytest.approx(found.profile.estimate, rel=1e-6)
    assert row.site.lifetimes.censored == sum(site.lifetimes.censored for site in found.profile.sites)


def test_growth_of_a_function_is_that_of_its_sites():
    before, now = standard(), named([Truth([0x1110, 0x3100], 1 << 20, 40), Truth([0x1200, 0x2100], 1 << 20, 16)])
    report = made(now, "diff", before=before.profile)
    assert list(rows(report, "Grown")) == ["cache::put at cache.rs:20"]  # parse is called from elsewhere, and did not grow
    assert report.rows[0].growth.bytes == pytest.approx((40 << 20) - before.sites[2].inuse.bytes - (12 << 20), rel=0.01)


def test_label_keeps_a_site_apart():
    found = named([Truth([0x1100], 1 << 20, 4, label="users"), Truth([0x1100], 1 << 20, 8)])
    assert list(rows(made(found), "In use")) == ["cache::put at cache.rs:10", "cache::put at cache.rs:10 (users)"]


@pytest.mark.parametrize("words, left, first", [
    (("serve", "", ""), 3, "parse at parse.cc:5"), (("cache.rs$", "", ""), 3, "cache::put in cache.rs"),
    (("", "^parse", ""), 3, "cache::put in cache.rs"), (("serve", "cache", ""), 1, "parse at parse.cc:5"),
    (("", "", "^cache"), 4, "main at main.rs:1"), (("nowhere", "", ""), 0, ""), (("", "", "."), 4, "hidden")])
def test_part_of_a_profile_is_looked_at(words, left, first):
    found = standard(choice=profile_command.choice(*words, ""))
    report = made(found)
    assert len(found.sites) == left and (report.rows[0].where if report.rows else "") == first
    assert any("looked at (--focus, --ignore)" in line for line in report.head) == (left < 4)
    assert report.rows or report.left == "No site matches --focus and --ignore."


def test_words_that_are_no_pattern_are_refused(tmp_path):
    with pytest.raises(ViewError, match="--ignore: "):
        profile_command.choice("", "(", "", "")
    with pytest.raises(ViewError, match="cannot read"):
        profile_command.choice("", "", "", str(tmp_path / "none"))


@pytest.mark.parametrize("pattern, suppressed", [
    ("leak:put", 3), ("leak:^put", 0), ("leak:^cache::*t$", 3), ("leak:parse.cc", 1), ("leak:program", 4), ("race:put", 0),
    ("# leak:put", 0), ("leak:", 0), ("leak:put\nleak:parse", 4)])
def test_known_leaks_are_left_out(tmp_path, pattern, suppressed):
    (tmp_path / "lsan").write_text(pattern + "\n", encoding="utf-8")
    found = standard(choice=profile_command.choice("", "", "", str(tmp_path / "lsan")))
    report = made(found, "leaks", by="stack")
    assert len(report.rows) == 4 - suppressed and len(made(found, by="stack").rows) == 4
    assert any("suppressed" in line for line in report.head) == bool(suppressed)
    assert suppressions(pattern) == found.choice.suppressed


@pytest.mark.parametrize("width", [20, 30, 40, 60, 76, 200])
def test_callers_are_shown_whole_as_far_as_they_fit(width):
    callers = ["insert", "Store::put_all", "handle_request", "run", "main"]
    row = Row(None, 0.0, where="grow at map.c:7", callers=callers, sites=[None] * 3)
    line = row.place(width)
    assert len(line) <= max(width, len(row.where)) and line.startswith(row.where)
    names = line.removeprefix(row.where).replace("(+2 stacks)", "").replace("<", " ").split()
    assert [name for name in names if name != "…"] == callers[:len([name for name in names if name != "…"])]
    assert width < 200 or line.endswith("run < main  (+2 stacks)")


@pytest.mark.parametrize("name, said", [
    ("main", "main"), ("a_name_of_c_that_is_rather_long_but_whole", "a_name_of_c_that_is_rather_long_but_whole"),
    ("outer::of::many::scopes::Store::put_all_of_them", "Store::put_all_of_them"),
    ("<tower::util::map::MapFuture<S,F> as tower_service::Service<R>>::call", "MapFuture<S,F>::call")])
def test_names_of_callers_are_brief(name, said):
    assert brief(name) == said


def test_threads_of_one_name_are_one():
    threads = [{"tid": 4712, "name": "io"}, {"tid": 4713, "name": "io"}, {"tid": 4714, "name": "main"}]
    report = made(standard(threads=threads), "threads")
    assert [(row.cells[0], row.where) for row in report.rows] == [
        ("io ×2", "cache::put in cache.rs"), ("main 4714", "parse at parse.cc:5")]
    assert [row.cells[0] for row in made(standard(), "threads").rows] == ["4713", "4714", "4712"]


def test_pprof_begins_stacks_where_the_program_allocates():
    one = profile_pprof.message()()
    one.ParseFromString(gzip.decompress(profile_pprof.encode(standard())))
    places = {place.id: place for place in one.location}
    names = {function.id: one.string_table[function.name] for function in one.function}
    stacks = [[names[line.function_id] for at in sample.location_id for line in places[at].line] for sample in one.sample]
    assert stacks[0] == ["cache::put", "serve", "main"] and stacks[1][:2] == ["cache::put", "std::vec::from_iter"]


@pytest.mark.parametrize("name, is_dropped", [
    ("malloc", True), ("operator new", True), ("alloc::alloc::exchange_malloc", True), ("alloc::vec::Vec<T,A>::push", True),
    ("<alloc::string::String as core::convert::From<&str>>::from", True), ("std::vector<int>::push_back", False),
    ("std::__cxx11::basic_string<char>::_M_create", True), ("<alloc::vec::Vec<T> as X>::from_iter", False),
    ("<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", False), ("cache::put", False), ("main", False),
    ("alloc_cache", False), ("std::rt::lang_start", False)])
def test_pprof_is_told_what_to_drop_by_both_writers(name, is_dropped):
    dropped, kept = (re.fullmatch(rule, name) for rule in (profile_pprof.DROP_FRAMES, profile_pprof.KEEP_FRAMES))
    assert bool(dropped and not kept) == is_dropped
    text = re.sub(r'"\s*\\\n\s*"', "", (ROOT / "observe/pprof.c").read_text(encoding="utf-8"))
    assert [re.search(rf'{key} +\\\n +"([^"]*)"', text)[1] for key in ("DROP_FRAMES", "KEEP_FRAMES")] == \
        [profile_pprof.DROP_FRAMES, profile_pprof.KEEP_FRAMES]


def test_source_has_bytes_beside_its_lines(tmp_path):
    source = tmp_path / "cache.rs"
    source.write_text("".join(f"line {number}\n" for number in range(1, 31)), encoding="utf-8")
    found = standard()
    for frames in found.frames.values():
        frames[:] = [dataclasses.replace(frame, file=frame.file.replace("cache.rs", str(source))) for frame in frames]
    said = profile_list.lines(found, re.compile("put"), width=200)
    assert said[0] == f"cache::put in {source}" and said[2].split()[-2:] == ["line", "8"] and said[-1].split()[-1] == "22"
    rows = {line.split()[-1]: line for line in said[2:]}
    assert "4.00 MiB    4.00 MiB      20  line 20" in rows["20"] and rows["15"].split()[:3] == ["–", "–", "15"]
    said = profile_list.lines(found, re.compile("^serve$"))  # which only calls, and whose source is not here
    assert said[2].split() == ["–", "28.0", "MiB", "30"] and said[-1] == "its source is not here"
    assert profile_list.lines(found, re.compile("nothing")) == ["No function that matches --list holds anything."]


def test_rows_of_no_site_are_none():
    assert grouped([], standard(), "function") == []
