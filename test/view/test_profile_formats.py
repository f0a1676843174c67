# SPDX-License-Identifier: MIT
"""Files for other tools: each read back by a parser of its form, and by the tool itself where it is
installed: go tool pprof, jeprof, Speedscope's page (from its registry, in a headless Chromium)."""
import functools
import gzip
import http.server
import json
import math
import re
import shutil
import subprocess
import threading

import leaky
import pytest
import synthetic
from opentelemetry.proto.profiles.v1development import profiles_pb2
from test_profile import made

from hakmem_lab import browser
from hakmem_view import profile_formats, profile_otlp, profile_pprof
from hakmem_view.profile_model import KINDS, profile
from hakmem_view.profile_names import Named


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return leaky.compiled(tmp_path_factory.mktemp("leaky"))


@pytest.fixture(scope="module")
def stored(program):
    path = program.parent / "profile.json"
    path.write_text(json.dumps(leaky.document(program)), encoding="utf-8")
    return path


@pytest.fixture
def named():
    return Named(made(synthetic.standard()), has_symbols=False)


def test_folded_stacks_are_outermost_first_and_sum_up(named):
    found = named.profile
    lines = profile_formats.collapsed(named, "inuse").splitlines()
    assert all(re.fullmatch(r"[^;]+(;[^;]+)* \d+", line) for line in lines)
    assert lines[0].startswith("program+0x3100;program+0x1400;cache ")
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == pytest.approx(found.estimate, abs=len(lines))
    found.sites[0].label = "a; b   c"
    assert ";a, b c " in profile_formats.collapsed(Named(found, has_symbols=False), "inuse")


@pytest.mark.parametrize("kind", list(KINDS))
def test_speedscope_has_stacks_of_its_frames_and_their_sums(named, kind):
    document = json.loads(profile_formats.speedscope_text(named, "it", kind))
    assert document["profiles"][document["activeProfileIndex"]]["name"] == KINDS[kind].title
    for one in document["profiles"]:
        assert len(one["samples"]) == len(one["weights"]) and sum(one["weights"]) == one["endValue"]
        assert {frame for stack in one["samples"]
                for frame in stack} <= set(range(len(document["shared"]["frames"])))


def jeprof(text: str) -> tuple[int, dict[tuple[int, ...], tuple[float, ...]], list[tuple[int, int]]]:
    """By jeprof's rules (AdjustSamples of heap_v2): rate, stack → objects and bytes in use and
    accumulated, mappings."""
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


def test_heap_v2_gives_jeprof_our_estimates(named):
    found = named.profile
    rate, sites, maps = jeprof(profile_formats.heap_v2(found))
    assert rate == 1 and maps == [(one.start, one.end) for one in found.mappings]
    for site in found.sites:
        objects, space, _, all_space = sites[site.stack]
        assert (objects, space, all_space) == pytest.approx(
            (site.inuse.objects, site.inuse.bytes, site.alloc.bytes), rel=0.02)


def test_heap_v2_of_mixed_sizes_is_not_bent_by_jeprofs_correction():
    """Small and large blocks at one site: the weights of each are known, not that of the mean."""
    document, space = synthetic.document(synthetic.standard()), 10240 * 64 + 2e7
    document["sites"] = [{"stack": ["0x555500000100"], "inuse": {
        "samples": 20, "objects": 10250, "bytes": space, "raw_bytes": 10 * 64 + 2e7}}]
    found = profile(document, "it")
    shown = jeprof(profile_formats.heap_v2(found))[1][found.sites[0].stack]
    assert shown[:2] == pytest.approx((10250, space), rel=0.01)


def parsed(data: bytes):
    found = profile_pprof.message()()
    found.ParseFromString(gzip.decompress(data))
    return found


def test_pprof_is_whole_and_refers_only_to_what_it_has(named):
    one = parsed(profile_pprof.encode(named, "peak"))
    text = one.string_table
    assert text[0] == "" and len(set(text)) == len(text)
    assert [(text[kind.type], text[kind.unit]) for kind in one.sample_type][:4] == [
        ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert text[one.default_sample_type] == "peak_space" and one.period == named.profile.rate
    assert (text[one.period_type.type], text[one.period_type.unit]) == ("space", "bytes")
    assert one.time_nanos == synthetic.NOW and one.duration_nanos == 60 * synthetic.SECOND
    places, functions = {place.id: place for place in one.location}, {function.id for function in one.function}
    for sample in one.sample:
        assert len(sample.value) == len(one.sample_type)
        assert all(line.function_id in functions for at in sample.location_id for line in places[at].line)
    assert sum(sample.value[3] for sample in one.sample) == pytest.approx(named.profile.estimate,
                                                                          abs=9)
    assert {place.mapping_id for place in one.location} == {1} and one.mapping[0].memory_start == synthetic.BEGIN
    labels = {text[label.key]: text[label.str] or label.num for label in one.sample[3].label}
    assert labels == {"bytes": 256, "label": "cache"}


# --- OpenTelemetry, by the ecosystem's own package ------------------------------------------------


def otlp(data: bytes):
    """The tables, and the profiles of a file."""
    found = profiles_pb2.ProfilesData()
    found.ParseFromString(data)
    assert found.resource_profiles[0].resource.attributes[0].value.string_value
    return found.dictionary, found.resource_profiles[0].scope_profiles[0].profiles


@pytest.mark.parametrize("kind, first", list(profile_pprof.DEFAULTS.items()))
def test_otlp_sums_are_those_of_pprof(named, kind, first):
    tables, profiles = otlp(profile_otlp.encode(named, kind))
    other = parsed(profile_pprof.encode(named, kind))
    expected = {other.string_table[one.type]: sum(sample.value[at] for sample in other.sample)
                for at, one in enumerate(other.sample_type)}
    sums = {tables.string_table[one.sample_type.type_strindex]:
            sum(sample.values[0] for sample in one.samples) for one in profiles}
    assert sums == expected and expected["inuse_space"] > 0 and list(sums)[0] == first


def test_otlp_tables_begin_with_nothing_and_every_index_is_in_its_table(named):
    """As the signal's schema asks: index 0 is none, entries are unique, a sample has one value."""
    tables, profiles = otlp(profile_otlp.encode(named))
    assert tables.string_table[0] == ""
    assert len(set(tables.string_table)) == len(tables.string_table)
    for table in (tables.mapping_table, tables.location_table, tables.function_table,
                  tables.link_table,
                  tables.attribute_table, tables.stack_table):
        assert table[0].ByteSize() == 0
        assert len({one.SerializeToString() for one in table}) == len(table)
    places = range(1, len(tables.location_table))
    assert {at for stack in tables.stack_table for at in stack.location_indices} <= set(places)
    for place in tables.location_table[1:]:
        assert 0 < place.mapping_index < len(tables.mapping_table)
        assert all(0 < line.function_index < len(tables.function_table) for line in place.lines)
    for one in profiles:
        keys = [(sample.stack_index, *sample.attribute_indices) for sample in one.samples]
        assert len(set(keys)) == len(keys)
        assert all(0 < key[0] < len(tables.stack_table) for key in keys)
        assert all(len(sample.values) == 1 and sample.values[0] > 0 for sample in one.samples)
    labels = {tables.attribute_table[at].value.string_value for one in profiles
              for sample in one.samples
              for at in sample.attribute_indices}
    assert labels == {"cache"}


@leaky.COMPILER
def test_otlp_leak_has_its_function_line_and_build_id(program):
    tables, profiles = otlp(profile_otlp.encode(Named(profile(leaky.document(program), "it"))))
    most = max(profiles[0].samples, key=lambda sample: sample.values[0])
    line = tables.location_table[tables.stack_table[most.stack_index].location_indices[0]].lines[0]
    name = tables.string_table[tables.function_table[line.function_index].name_strindex]
    assert (name, line.line) == ("leak_record", leaky.line_of("the line of the leak"))
    ids = {tables.attribute_table[at].value.string_value for mapping in tables.mapping_table
           for at in mapping.attribute_indices}
    assert leaky.Elf.open(str(program)).build_id in ids


# --- the tools of others --------------------------------------------------------------------------


def top(path, kind: str = "inuse_space") -> str:
    """The first line of `go tool pprof -top`."""
    shown = subprocess.run(["go", "tool", "pprof", "-top", "-lines", f"-sample_index={kind}", path],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    return shown[next(at for at, line in enumerate(shown) if "flat%" in line) + 1]


@leaky.COMPILER
@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
def test_go_tool_pprof_names_the_leak(view, stored, tmp_path):
    path = tmp_path / "heap.pb.gz"
    assert view("profile", "--pprof", path, stored).returncode == 0
    line = leaky.line_of("the line of the leak")
    assert re.search(rf"leak_record \S*leaky\.c:{line}\b", top(path))
    assert "pin_slab" in top(path, "pinned_space") and " work " in top(path, "alloc_space")
    # from a folder that is no part of the source's path, which pprof would cut off
    listed = subprocess.run(["go", "tool", "pprof", "-list", "^leak_record$", path], capture_output=True, text=True, check=True,
                            cwd=tmp_path).stdout
    assert re.search(rf"^ +[\d.]+MB +[\d.]+MB +{line}:.*the line of the leak", listed, re.M), listed  # its source, found by its path


@leaky.COMPILER
@pytest.mark.skipif(not shutil.which("jeprof"), reason="jeprof (Debian: libjemalloc-dev) is not installed")
def test_jeprof_names_the_leak(view, stored, program, tmp_path):
    assert view("profile", "--heap-v2", tmp_path / "heap", stored).returncode == 0
    done = subprocess.run(["jeprof", "--text", "--lines", program, tmp_path / "heap"],
                          capture_output=True, text=True,
                          check=True)
    first = next(line for line in done.stdout.splitlines() if "%" in line)
    assert first.split()[5].startswith("leak_record"), done.stdout
    total = float(re.search(r"Total: ([\d.]+) MB", done.stdout)[1])
    assert total == pytest.approx(profile(json.loads(stored.read_text()), "it").estimate / 1048576, rel=0.02)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@leaky.COMPILER
@pytest.mark.skipif(not (shutil.which("npm") and browser.find()),
                    reason="npm or chromium is not installed")
def test_speedscope_opens_our_files(view, stored, tmp_path):
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                           "speedscope@1"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm got no speedscope: {done.stderr.strip()[-200:]}")
    root = tmp_path / "node_modules/speedscope/dist/release"
    names = {"speedscope": "a.json", "pprof": "b.pb.gz", "collapsed": "c.folded"}
    words = [word for name, file in names.items() for word in (f"--{name}", root / file)]
    assert view("profile", *words, stored).returncode == 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                         functools.partial(Quiet, directory=root)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, file in names.items():
            page = f"http://127.0.0.1:{server.server_port}/index.html#profileURL=/{file}&title=ours"
            flags = [*browser.FLAGS, f"--user-data-dir={tmp_path / name}",
                     "--virtual-time-budget=15000"]
            text = subprocess.run([browser.find(), *flags, "--dump-dom", page], capture_output=True,
                                  text=True,
                                  check=True).stdout
            assert "Left Heavy" in text and "ours" in text, name  # the views of a loaded profile
        server.shutdown()


@leaky.COMPILER
def test_table_names_functions_and_lines(view, stored):
    for option, function, words in (("--leaks", "leak_record", "the line of the leak"),
                                    ("--pinned", "pin_slab", "the line of the pinned blocks")):
        said = view("profile", option, stored, width=100).stdout
        assert f"{function} at leaky.c:{leaky.line_of(words)}  < main" in said


@leaky.COMPILER
def test_folded_stacks_and_speedscope_have_names(view, stored, tmp_path):
    done = view("profile", "--collapsed", tmp_path / "c", "--speedscope", tmp_path / "s", stored)
    assert done.returncode == 0 and done.stderr.count("\n") == 2
    assert re.match(r"main;leak_record \d+\nmain;pin_slab \d+\n$", (tmp_path / "c").read_text())
    frames = json.loads((tmp_path / "s").read_text())["shared"]["frames"]
    named = {(one["name"], one.get("line")) for one in frames}
    assert ("leak_record", leaky.line_of("the line of the leak")) in named
