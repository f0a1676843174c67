# SPDX-License-Identifier: MIT
"""Files for other tools: each read back by a parser of its form, and by the tool itself where it is installed."""
import gzip
import json
import math
import re
import shutil
import subprocess

import jsonschema
import leaky
import pytest
from test_profile import made

import synthetic
from hakmem_view import profile_formats, profile_pprof
from hakmem_view.profile_model import KINDS, profile
from hakmem_view.profile_names import Named

SPEEDSCOPE = {  # of speedscope's file-format-spec.ts: what it insists on
    "type": "object", "required": ["$schema", "shared", "profiles"], "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": {
            "type": "object", "required": ["name"], "additionalProperties": False, "properties": {
                "name": {"type": "string"}, "file": {"type": "string"}, "line": {"type": "integer"}, "col": {"type": "integer"}}}}}},
        "activeProfileIndex": {"type": "integer"}, "exporter": {"type": "string"}, "name": {"type": "string"},
        "profiles": {"type": "array", "minItems": 1, "items": {
            "type": "object", "additionalProperties": False,
            "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"], "properties": {
                "type": {"const": "sampled"}, "name": {"type": "string"}, "unit": {"enum": ["bytes", "none"]},
                "startValue": {"type": "number"}, "endValue": {"type": "number"},
                "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                "weights": {"type": "array", "items": {"type": "number"}}}}}}}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return leaky.compiled(tmp_path_factory.mktemp("leaky"))


@pytest.fixture(scope="module")
def stored(program):
    path = program.parent / "profile.json"
    path.write_text(json.dumps(leaky.document(program)), encoding="utf-8")
    return path


def test_folded_stacks_are_outermost_first_and_sum_up():
    found = made(synthetic.standard())
    lines = profile_formats.collapsed(Named(found, has_symbols=False), "inuse").splitlines()
    assert all(re.fullmatch(r"[^;]+(;[^;]+)* \d+", line) for line in lines)
    assert lines[0].startswith("program+0x3100;program+0x1400;cache ")
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == pytest.approx(found.estimate, abs=len(lines))
    found.sites[0].label = "a; b   c"
    assert ";a, b c " in profile_formats.collapsed(Named(found, has_symbols=False), "inuse")


@pytest.mark.parametrize("kind", list(KINDS))
def test_speedscope_keeps_to_its_schema(kind):
    found = made(synthetic.standard())
    document = json.loads(profile_formats.speedscope_text(Named(found, has_symbols=False), "it", kind))
    jsonschema.validate(document, SPEEDSCOPE)
    assert document["profiles"][document["activeProfileIndex"]]["name"] == KINDS[kind].title
    for one in document["profiles"]:
        assert len(one["samples"]) == len(one["weights"]) and sum(one["weights"]) == one["endValue"]
        assert all(0 <= frame < len(document["shared"]["frames"]) for stack in one["samples"] for frame in stack)


def jeprof(text: str) -> tuple[int, dict[tuple[int, ...], tuple[float, ...]], list[tuple[int, int]]]:
    """By jeprof's rules (AdjustSamples of heap_v2): rate, stack → objects and bytes in use and accumulated, mappings."""
    head, *lines = text.split("\n")
    rate = int(re.fullmatch(r"heap_v2/(\d+)", head)[1])
    found, stack, counts = {}, None, re.compile(r"  t\*: (\d+): (\d+) \[(\d+): (\d+)\]")
    at = lines.index("MAPPED_LIBRARIES:")
    for line in lines[:at]:
        if line.startswith("@"):
            stack = tuple(int(word, 16) for word in line[1:].split())
        elif line:
            objects, space, all_objects, all_space = map(int, counts.fullmatch(line).groups())
            scaled = []
            for number, size in ((objects, space), (all_objects, all_space)):
                scale = 1 / (1 - math.exp(-(size / number) / rate)) if number else 0
                scaled += [number * scale, size * scale]
            found[stack or ()] = tuple(scaled)
    maps = [re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line) for line in lines[at + 1:] if line]
    return rate, found, [(int(one[1], 16), int(one[2], 16)) for one in maps]


def test_heap_v2_gives_jeprof_our_estimates():
    found = made(synthetic.standard())
    rate, sites, maps = jeprof(profile_formats.heap_v2(found))
    assert rate == 1 and maps == [(one.start, one.end) for one in found.mappings]
    for site in found.sites:
        objects, space, _, all_space = sites[site.stack]
        assert space == pytest.approx(site.inuse.bytes, rel=0.02) and all_space == pytest.approx(site.alloc.bytes, rel=0.02)
        assert objects == pytest.approx(site.inuse.objects, rel=0.02)


def test_heap_v2_of_mixed_sizes_is_not_bent_by_jeprofs_correction():
    """Small and large blocks at one site: the weights of each are known, their mean's is not that of the mean."""
    document = synthetic.document(synthetic.standard())
    document["sites"] = [{"stack": ["0x555500000100"], "inuse": {"samples": 20, "objects": 10240 + 10, "bytes": 10240 * 64 + 10 * 2e6,
                                                                "raw_bytes": 10 * 64 + 10 * 2e6}}]
    found = profile(document, "it")
    objects, space, _, _ = jeprof(profile_formats.heap_v2(found))[1][found.sites[0].stack]
    assert objects == pytest.approx(10250, rel=0.01) and space == pytest.approx(10240 * 64 + 2e7, rel=0.01)


def parsed(data: bytes):
    found = profile_pprof.message()()
    found.ParseFromString(gzip.decompress(data))
    return found


def test_pprof_is_whole_and_refers_only_to_what_it_has():
    found = made(synthetic.standard())
    one = parsed(profile_pprof.encode(Named(found, has_symbols=False), "peak"))
    text = one.string_table
    assert text[0] == "" and len(set(text)) == len(text)
    assert [(text[kind.type], text[kind.unit]) for kind in one.sample_type][:4] == [
        ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert text[one.default_sample_type] == "peak_space" and one.period == found.rate
    assert (text[one.period_type.type], text[one.period_type.unit]) == ("space", "bytes")
    assert one.time_nanos == synthetic.NOW and one.duration_nanos == 60 * synthetic.SECOND
    places, functions = {place.id: place for place in one.location}, {function.id for function in one.function}
    for sample in one.sample:
        assert len(sample.value) == len(one.sample_type)
        assert all(line.function_id in functions for at in sample.location_id for line in places[at].line)
    assert sum(sample.value[3] for sample in one.sample) == pytest.approx(found.estimate, abs=9)
    assert {place.mapping_id for place in one.location} == {1} and one.mapping[0].memory_start == synthetic.BEGIN
    labels = {text[label.key]: text[label.str] or label.num for label in one.sample[3].label}
    assert labels == {"bytes": 256, "label": "cache"}


@leaky.COMPILER
@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
def test_go_tool_pprof_names_the_leak(view, stored, tmp_path):
    done = view("profile", "--pprof", tmp_path / "heap.pb.gz", stored)
    assert (done.returncode, done.stdout) == (0, "")
    for option, name in (("-inuse_space", "leak_record"), ("-sample_index=pinned_space", "pin_slab"), ("-alloc_space", "work")):
        shown = subprocess.run(["go", "tool", "pprof", "-top", option, tmp_path / "heap.pb.gz"], capture_output=True, text=True,
                               timeout=120, check=True).stdout.splitlines()
        rows = shown[next(at for at, line in enumerate(shown) if "flat%" in line) + 1:]
        assert rows[0].split()[5] == name, shown
    listed = subprocess.run(["go", "tool", "pprof", "-top", "-lines", tmp_path / "heap.pb.gz"], capture_output=True, text=True,
                            timeout=120, check=True).stdout
    assert re.search(rf"leak_record \S*leaky\.c:{leaky.line_of('the line of the leak')}\b", listed)


@leaky.COMPILER
@pytest.mark.skipif(not shutil.which("jeprof"), reason="jeprof (Debian: libjemalloc-dev) is not installed")
def test_jeprof_names_the_leak(view, stored, program, tmp_path):
    assert view("profile", "--heap-v2", tmp_path / "heap", stored).returncode == 0
    done = subprocess.run(["jeprof", "--text", "--lines", program, tmp_path / "heap"], capture_output=True, text=True, timeout=120,
                          check=True)
    first = next(line for line in done.stdout.splitlines() if "%" in line)
    assert first.split()[5].startswith("leak_record"), done.stdout
    total = float(re.search(r"Total: ([\d.]+) MB", done.stdout)[1])
    assert total == pytest.approx(profile(json.loads(stored.read_text()), "it").estimate / 1048576, rel=0.02)


@leaky.COMPILER
def test_table_names_functions_and_lines(view, stored):
    said = view("profile", stored, width=100).stdout
    assert f"leak_record at leaky.c:{leaky.line_of('the line of the leak')}  < main" in said
    pinned = view("profile", "--pinned", stored, width=100).stdout
    assert f"pin_slab at leaky.c:{leaky.line_of('the line of the pinned blocks')}  < main" in pinned and "31.0 MiB" in pinned


@leaky.COMPILER
def test_folded_stacks_and_speedscope_have_names(view, stored, tmp_path):
    done = view("profile", "--collapsed", tmp_path / "c", "--speedscope", tmp_path / "s", stored)
    assert done.returncode == 0 and done.stderr.count("\n") == 2
    assert re.match(r"main;leak_record \d+\nmain;pin_slab \d+\n$", (tmp_path / "c").read_text())
    frames = json.loads((tmp_path / "s").read_text())["shared"]["frames"]
    assert {"name": "leak_record", "line": leaky.line_of("the line of the leak")}.items() <= next(
        frame for frame in frames if frame["name"] == "leak_record").items()
