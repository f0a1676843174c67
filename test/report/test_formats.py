# SPDX-License-Identifier: MIT
"""Reports written while eight threads work and the process forks, read by the parsers of others."""
import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import jsonschema
import prometheus_client.parser
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/statistics.md"
SUPERSLAB_BYTES = 4 << 20
PARTS = ("live cached outbox remote quarantine lost slab_free uncarved slab_tail large moving "
         "unused_dirty unused_clean").split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reports")
    subprocess.run([os.environ["HAK_REPORT_LOAD"], path], check=True, timeout=300)
    return path


@pytest.fixture(scope="module")
def schema():
    return json.loads((ROOT / "docs/schema/stats.schema.json").read_text())


def files(folder, form):
    found = sorted(folder.glob(f"{form}.*"))
    assert len(found) == 41, form  # 20 rounds of parent and child, and the end
    return found


def load(folder, end):
    return json.loads((folder / f"json.{end}").read_text())


def superslab_parts(report):
    return sum(report["bytes"][name] for name in PARTS)


def samples(path):
    """{(name, class or band, or None): value}; the parser refuses what is malformed."""
    found = {}
    for family in prometheus_client.parser.text_string_to_metric_families(path.read_text()):
        assert family.documentation, family.name
        assert family.type in ("counter", "gauge"), family.name
        for sample in family.samples:
            assert sample.name == family.name + ("_total" if family.type == "counter" else ""), sample
            label = family.name.split("_")[1] if family.name.startswith(("hakmem_class_", "hakmem_band_")) else None
            assert set(sample.labels) == ({"version"} if family.name == "hakmem_info" else {label} if label else set()), sample
            key = sample.name, sample.labels.get(label)
            assert key not in found, key
            found[key] = sample.value
    return found


def test_schema_is_one(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


def test_json_has_the_form_of_the_schema(folder, schema):
    validator = jsonschema.Draft202012Validator(schema)
    for path in files(folder, "json"):
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(json.loads(path.read_text()))]
        assert not errors, (path.name, errors[:5])


def test_schema_refuses_what_has_another_form(folder, schema):
    validator = jsonschema.Draft202012Validator(schema)
    for change in (lambda r: r["bytes"].pop("live"), lambda r: r["events"].update(unheard=1),
                   lambda r: r["counts"].update(slabs=-1), lambda r: r.update(schema=2),
                   lambda r: r["threads"][0].pop("idle_ms"), lambda r: r["bands"][0].pop("again_bytes"), lambda r: r["classes"][0].update(bytes="16")):
        report = load(folder, "end")
        change(report)
        assert not validator.is_valid(report)


def test_figures_of_parent_at_rest_and_of_children_add_up(folder):
    for end in ["end", *(f"child.{i}" for i in range(20))]:
        report = load(folder, end)
        assert superslab_parts(report) == report["counts"]["superslabs"] * SUPERSLAB_BYTES, end
        for row in report["classes"]:
            parts = "live cached outbox remote quarantine lost free".split()
            assert sum(row[name] for name in parts) == row["blocks"], (end, row)
    assert load(folder, "end")["bytes"]["lost"] == load(folder, "end")["bytes"]["moving"] == 0
    assert any(load(folder, f"child.{i}")["bytes"]["lost"] for i in range(20))


def test_threads_of_parent_and_children_are_listed(folder):
    assert {len([t for t in load(folder, i)["threads"] if t["attached"]]) for i in range(20)} == {9}
    for i in range(20):
        child = load(folder, f"child.{i}")
        alive = [thread for thread in child["threads"] if thread["attached"]]
        assert len(alive) == child["counts"]["threads"] == 1
        assert alive[0]["id"] == child["pid"] != load(folder, i)["pid"]


def test_events_only_grow(folder):
    reports = [load(folder, end)["events"] for end in [*range(20), "end"]]
    for before, after in zip(reports, reports[1:]):
        assert all(before[name] <= after[name] for name in before)
    for name in ("refill", "overflow", "remote_out", "remote_in", "huge_map", "span_warm", "slab_create"):
        assert reports[-1][name] > 0, name


def test_metrics_are_parsed(folder):
    for path in files(folder, "metrics"):
        assert len(samples(path)) > 100


def test_metrics_and_text_say_what_json_says(folder):
    report, found = load(folder, "end"), samples(folder / "metrics.end")
    text = dict(line.split()[1:3] for line in (folder / "text.end").read_text().splitlines())
    for name in PARTS:
        assert found["hakmem_" + name + "_bytes", None] == report["bytes"][name] == int(text[name + "_bytes"])
    assert found["hakmem_info", None] == 1 and found["hakmem_rss_bytes", None] > SUPERSLAB_BYTES / 4
    assert report["command"] == "report_load"
    stable = set(report["events"]) - {"pressure_look"}
    for name in stable:
        assert found[f"hakmem_{name}_total", None] == report["events"][name] == int(text[name]), name
    for row in report["classes"]:
        assert found["hakmem_class_live", str(row["bytes"])] == row["live"]
        assert found["hakmem_class_refill_total", str(row["bytes"])] == row["events"]["refill"]


def test_bands_of_sizes_are_told_alike(folder):
    report, found = load(folder, "end"), samples(folder / "metrics.end")
    text = (folder / "text.end").read_text()
    assert len(report["bands"]) == 8
    for band in report["bands"]:
        assert band["fresh_bytes"] <= band["taken_bytes"] and band["touched_bytes"] <= band["sampled_bytes"]
        for name, value in band.items():
            if name != "text":
                sums = f"hakmem_band_{name}_total", band["text"]
                assert found.get(sums, found.get((f"hakmem_band_{name}", band["text"]))) == value
        assert (f"hakmem: {band['text']}: " in text) == (band["taken_bytes"] != 0)
    slabs = sum(band["taken_bytes"] for band in report["bands"] if band["text"].startswith("slabs"))
    made = sum(row["events"]["slab_create"] for row in report["classes"])
    assert made > 0 and slabs >= made * (64 << 10)
    assert any(band["taken_bytes"] for band in report["bands"] if band["text"].startswith("blocks"))


def test_names_are_those_of_the_documents(folder):
    report, found = load(folder, "end"), samples(folder / "metrics.end")
    text = {line.split()[1] for line in (folder / "text.end").read_text().splitlines()}
    rows = re.findall(r"^\|(?: `(\w+)` \|)? `(\w+)(\[\])?\.(\w+)` \| `(\w+)` \|", PAGE.read_text(), re.M)
    assert len(rows) > 70
    for line, part, is_list, name, metric in rows:
        assert name in (report[part][0] if is_list else report[part]), (part, name)
        assert any(key[0] == metric for key in found), metric
        assert not line or line in text, line
    named = {metric for *_, metric in rows}
    assert {key[0] for key in found if key[1] is None} <= named | {"hakmem_info", "hakmem_rss_bytes"}


def test_text_is_lines_of_ours(folder):
    for path in files(folder, "text"):
        text = path.read_text()
        assert re.match(r"hakmem: \d+\.\d+\.\d+, process \d+ \(report_load\)\n", text) and text.endswith("\n")
        assert all(line.startswith("hakmem: ") and len(line) < 200 for line in text.splitlines())


def test_xml_is_well_formed(folder):
    for path in files(folder, "xml"):
        root = xml.etree.ElementTree.parse(path).getroot()
        figures = [row.get("name") for row in root.findall("figure")]
        assert root.tag == "malloc" and len(figures) == len(set(figures)) > 50
