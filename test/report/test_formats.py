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
SCHEMAS = sorted((ROOT / "docs/schema").glob("*.schema.json"))
SUPERSLAB_BYTES = 4 << 20
PARTS = ("live cached remote quarantine lost slab_free uncarved slab_tail large moving "
         "unused_dirty unused_clean").split()
ROW = "live cached remote quarantine lost free".split()
CHILDREN = [f"child.{i}" for i in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reports")
    subprocess.run([os.environ["HAK_REPORT_LOAD"], path], check=True)
    return path


@pytest.fixture
def report(folder):
    return load(folder, "end")


def files(folder, form):
    found = sorted(folder.glob(f"{form}.*"))
    assert len(found) == 41, form  # 20 rounds of parent and child, and the end
    return found


def load(folder, end):
    return json.loads((folder / f"json.{end}").read_text())


def validator(name):
    schema = json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def samples(path):
    """{(name, class, or None): value}; the parser refuses what is malformed."""
    found = {}
    for family in prometheus_client.parser.text_string_to_metric_families(path.read_text()):
        assert family.documentation and family.type in ("counter", "gauge"), family.name
        label = "class" if family.name.startswith("hakmem_class_") else None
        label = "version" if family.name == "hakmem_info" else label
        for sample in family.samples:
            assert sample.name == family.name + ("_total" if family.type == "counter" else "")
            assert set(sample.labels) == ({label} if label else set()), sample
            key = sample.name, None if label == "version" else sample.labels.get(label)
            assert key not in found, key
            found[key] = sample.value
    return found


def spans_tile(report):
    assert report["superslabs"]
    for superslab in report["superslabs"]:
        unit = 0
        for span in superslab["spans"]:
            assert span["unit"] == unit
            assert span["kind"] != "slab" or span["live"] <= span["blocks"] <= span["capacity"]
            unit += span["units"]
        assert unit == report["superslab_units"]


def causes_are_in_order(report):
    sizes = [cause["bytes"] for cause in report["causes"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == report["sum_bytes"]
    assert report["first"] == report["causes"][0]["name"]
    assert report["causes"][0]["advice"] in report["text"]
    assert len({cause["name"] for cause in report["causes"]}) == len(sizes)


@pytest.mark.parametrize("form, schema, holds", [
    ("json", "stats", lambda report: True), ("explain", "explain", causes_are_in_order),
    ("map", "map", spans_tile)])
def test_json_has_the_form_of_its_schema(folder, form, schema, holds):
    checker = validator(schema)
    for path in files(folder, form):
        found = json.loads(path.read_text())
        errors = [f"{one.json_path}: {one.message}" for one in checker.iter_errors(found)]
        assert not errors, (path.name, errors[:5])
        holds(found)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.name)
def test_schemas_refuse_what_is_something_else(schema):
    checker = validator(schema.name.partition(".")[0])
    assert not checker.is_valid({}) and not checker.is_valid([])


@pytest.mark.parametrize("change", [
    lambda r: r["bytes"].pop("live"), lambda r: r["events"].update(unheard=1),
    lambda r: r["counts"].update(slabs=-1), lambda r: r.update(schema=2),
    lambda r: r["threads"][0].pop("idle_ms"),
    lambda r: r["classes"][0].update(bytes="16")])
def test_schema_refuses_what_has_another_form(report, change):
    change(report)
    assert not validator("stats").is_valid(report)


def test_figures_of_parent_at_rest_and_of_children_add_up(folder, report):
    for end in ["end", *CHILDREN]:
        one = load(folder, end)
        parts = sum(one["bytes"][name] for name in PARTS)
        assert parts == one["counts"]["superslabs"] * SUPERSLAB_BYTES, end
        for row in one["classes"]:
            assert sum(row[name] for name in ROW) == row["blocks"], (end, row)
    assert report["bytes"]["lost"] == report["bytes"]["moving"] == 0
    assert any(load(folder, end)["bytes"]["lost"] for end in CHILDREN)


def test_threads_of_parent_and_children_are_listed(folder):
    for i, end in enumerate(CHILDREN):
        parent, child = load(folder, i), load(folder, end)
        assert len([one for one in parent["threads"] if one["attached"]]) == 9
        alive = [thread for thread in child["threads"] if thread["attached"]]
        assert len(alive) == child["counts"]["threads"] == 1
        assert alive[0]["id"] == child["pid"] != parent["pid"]


def test_events_only_grow(folder):
    reports = [load(folder, end)["events"] for end in [*range(20), "end"]]
    for before, after in zip(reports, reports[1:]):
        assert all(before[name] <= after[name] for name in before)
    for name in "refill overflow remote_out huge_map slab_create".split():
        assert reports[-1][name] > 0, name


def test_metrics_and_text_say_what_json_says(folder, report):
    for path in files(folder, "metrics"):
        assert len(samples(path)) > 100
    found = samples(folder / "metrics.end")
    lines = (folder / "text.end").read_text().splitlines()
    text = dict(line.split()[1:3] for line in lines)
    assert found["hakmem_info", None] == 1 and report["command"] == "report_load"
    assert found["hakmem_rss_bytes", None] > SUPERSLAB_BYTES / 4
    for name in PARTS:
        metric = found[f"hakmem_{name}_bytes", None]
        assert metric == report["bytes"][name] == int(text[f"{name}_bytes"])
    for name in set(report["events"]) - {"limit_reads"}:
        metric = found[f"hakmem_{name}_total", None]
        assert metric == report["events"][name] == int(text[name]), name
    for row in report["classes"]:
        assert found["hakmem_class_live", str(row["bytes"])] == row["live"]
        assert found["hakmem_class_refill_total", str(row["bytes"])] == row["events"]["refill"]


def test_names_are_those_of_the_documents(folder, report):
    found = samples(folder / "metrics.end")
    text = {line.split()[1] for line in (folder / "text.end").read_text().splitlines()}
    rows = re.findall(r"^\|(?: `(\w+)` \|)? `(\w+)(\[\])?\.(\w+)` \| `(\w+)` \|",
                      (ROOT / "docs/statistics.md").read_text(), re.M)
    assert len(rows) == 69
    for line, part, is_list, name, metric in rows:
        assert name in (report[part][0] if is_list else report[part]), (part, name)
        assert any(key[0] == metric for key in found), metric
        assert not line or line in text, line
    named = {metric for *_, metric in rows}
    assert {key[0] for key in found if key[1] is None} <= named | {"hakmem_info", "hakmem_rss_bytes"}


def test_text_is_lines_of_ours_and_xml_is_well_formed(folder):
    for path in files(folder, "text"):
        text = path.read_text()
        assert re.match(r"hakmem: \d+\.\d+\.\d+, process \d+ \(report_load\)\n", text)
        assert text.endswith("\n")
        assert all(line[:8] == "hakmem: " and len(line) < 200 for line in text.splitlines())
    for path in files(folder, "xml"):
        root = xml.etree.ElementTree.parse(path).getroot()
        figures = [row.get("name") for row in root.findall("figure")]
        assert root.tag == "malloc" and len(figures) == len(set(figures)) == 25
