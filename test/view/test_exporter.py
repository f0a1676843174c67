# SPDX-License-Identifier: MIT
"""`hakmem exporter`: started on a free port, scraped as Prometheus does, asked about one process, and ended; against real
processes. What comes with it names only what it serves."""
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from conftest import ROOT, TOOL
from prometheus_client.parser import text_string_to_metric_families
from test_profile_formats import parsed
from test_real import LIBRARY, OBSERVED, PROGRAM

from hakmem_exporter import collector, labels
from hakmem_view import colours, observer
from hakmem_view.installed import own_version

TOOLS = TOOL.parent
EXTRAS = ROOT / "packaging" / "exporter"
MOST_SERIES = 150
NAME = re.compile(r"\bhakmem_[a-z_]+\b")
UNITS = re.compile(r"_(ms|us|ns|kib|mib|kb|mb|minutes|percent)(_total)?$")  # promtool refuses them
pytestmark = OBSERVED


@pytest.fixture(scope="module")
def processes():
    """Two on hakmem."""
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": ""}
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
               for _ in range(2)]
    for one in running:
        assert one.stdout.readline() == b"ready\n"
    yield running
    for one in running:
        one.kill()
        one.communicate()


def start(*words) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, TOOLS / "exporter.py", *map(str, words)], stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def address(processes):  # pylint: disable=unused-argument
    """Of an exporter, which ends with status 0 when it is told to."""
    run = start("--listen", "127.0.0.1:0")
    said = run.stderr.readline()
    found = re.fullmatch(r"hakmem: exporter: (http://127\.0\.0\.1:\d+)/metrics\n", said)
    assert found, said + run.stderr.read()
    yield found[1]
    run.send_signal(signal.SIGTERM)
    assert (run.wait(), run.stderr.read()) == (0, "")


def get(address: str, path: str, method: str = "GET") -> tuple[int, str, str]:
    """Status, type, body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, method=method)) as answer:
            return answer.status, answer.headers.get_content_type(), answer.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get_content_type(), error.read().decode("utf-8")


def families(address: str) -> dict:
    status, kind, text = get(address, "/metrics")
    assert (status, kind) == (200, "text/plain")
    found = list(text_string_to_metric_families(text))
    assert len({one.name for one in found}) == len(found), "a family comes twice"
    return {one.name: one for one in found}


def test_processes_are_served_with_their_labels(address, processes):
    found = families(address)
    for one in processes:
        mine = [sample for family in found.values() for sample in family.samples if sample.labels.get("pid") == str(one.pid)]
        assert 70 < len(mine) <= MOST_SERIES
        assert {tuple(sample.labels[name] for name in labels.NAMES) for sample in mine} == {tuple(labels.of(one.pid).values())}
        values = {sample.name: sample.value for sample in mine if "cause" not in sample.labels}
        assert values["hakmem_readable"] == 1 and values["hakmem_live_bytes"] > 1 << 20
        causes = [sample.value for sample in mine if sample.name == "hakmem_resident_cause_bytes"]
        assert len(causes) == 12 and abs(sum(causes) - values["hakmem_rss_bytes"]) < 0.1 * values["hakmem_rss_bytes"]
        assert [sample.labels["version"] for sample in mine if sample.name == "hakmem_info"] == [own_version()]
    assert found["hakmem_exporter_processes"].samples[0].value >= 2
    again = families(address)
    assert again["hakmem_exporter_collections"].samples[0].value >= found["hakmem_exporter_collections"].samples[0].value >= 1


def test_metrics_are_named_as_prometheus_asks(address):
    for one in families(address).values():
        assert one.documentation and one.type in ("gauge", "counter"), one
        assert re.fullmatch(r"hakmem_[a-z0-9_]+", one.name) and not UNITS.search(one.name) and "__" not in one.name
        assert len({(sample.name, tuple(sorted(sample.labels.items()))) for sample in one.samples}) == len(one.samples)
        assert all(sample.name == one.name + ("_total" if one.type == "counter" else "") for sample in one.samples)


def test_one_process_is_explained(address, processes):
    pid = processes[0].pid
    status, kind, text = get(address, f"/explain?pid={pid}")
    assert (status, kind) == (200, "text/plain") and "RSS is" in text and f"process {pid}" in text
    status, kind, text = get(address, f"/explain?pid={pid}&format=json")
    assert (status, kind) == (200, "application/json") and json.loads(text)["pid"] == pid
    assert get(address, f"/explain?pid={pid}", "HEAD") == (200, "text/plain", "")


def test_process_that_samples_has_a_profile(address, processes):
    pid = processes[1].pid
    status, kind, text = get(address, f"/profile?pid={pid}")
    assert (status, kind) == (503, "text/plain") and f"hakmem tell {pid} rate 512k" in text and text.count("\n") == 1
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONMALLOC": "malloc", "LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": "profile_rate:16k"}) as one:
        assert one.stdout.readline() == b"ready\n"
        with urllib.request.urlopen(f"{address}/profile?pid={one.pid}") as answer:
            assert answer.headers["Content-Type"] == "application/octet-stream"
            found = parsed(answer.read())
        status, kind, text = get(address, f"/profile?pid={one.pid}&format=json")
        one.stdin.close()
    assert (status, kind) == (200, "application/json") and json.loads(text)["pid"] == one.pid
    assert found.sample and [found.string_table[kind.type] for kind in found.sample_type][3] == "inuse_space"


@pytest.mark.parametrize("path, status, said", [
    ("/", 200, "/metrics"), ("/explain", 400, "pid=N is wanted"), ("/explain?pid=x", 400, "pid=N"), ("/explain?pid=-1", 400, "pid=N"),
    ("/explain?pid=1&format=xml", 400, "format is text or json"),
    ("/profile?pid=1&format=text", 400, "format is pprof or json"), ("/profile", 400, "pid=N is wanted"),
    ("/profile?pid=999999999", 404, "there is no process 999999999"), (f"/profile?pid={os.getpid()}", 503, "does not run on hakmem"), ("/explain?pid=999999999", 404, "there is no process 999999999"),
    (f"/explain?pid={os.getpid()}", 503, "does not run on hakmem"), ("/etc/passwd", 404, "there are /metrics"),
    ("/explain?pid=../1", 400, "pid=N"), ("/explain?pid=" + "1" * 5000, 400, "pid=N")])
def test_other_questions_get_one_line(address, path, status, said):
    found, kind, text = get(address, path)
    assert (found, kind) == (status, "text/plain") and said in text and (path == "/" or text.count("\n") == 1)


def test_only_reading_is_answered(address):
    assert get(address, "/metrics", "POST")[0] == 405


def test_processes_above_the_limit_are_counted_and_who_asks_soon_gets_the_same(processes):
    made = collector.Collector(collector.Limits(processes=1, fresh_seconds=1e9))
    first, second = list(made.collect()), list(made.collect())
    assert first == second and made.scrapes == 1
    values = {sample.name: sample.value for one in first for sample in one.samples if sample.name.startswith("hakmem_exporter_")}
    assert values["hakmem_exporter_processes"] + values["hakmem_exporter_unreadable_processes"] <= 1
    assert values["hakmem_exporter_skipped_processes"] >= len(processes) - 1


def test_process_that_cannot_be_read_is_one_series(program):
    """And one that has ended is none."""
    found = [collector.read(program(mode).pid, collector.Limits()) for mode in ("forbidden", "ok")]
    ended = program()
    ended.kill()
    ended.wait()
    assert collector.read(ended.pid, collector.Limits()).ended
    assert "cannot be looked into" in found[0].reason and not found[1].reason
    samples = [sample for one in collector.merged(found) for sample in one.samples if sample.labels["pid"] == found[0].labels["pid"]]
    assert [(sample.name, sample.value) for sample in samples] == [("hakmem_readable", 0)]


def test_observer_that_takes_too_long_is_ended(program, monkeypatch, tmp_path):
    (tmp_path / "slow").write_text("#!/bin/sh\nexec sleep 600\n", encoding="ascii")
    (tmp_path / "slow").chmod(0o755)
    one = program()
    monkeypatch.setattr(observer, "PROGRAM", tmp_path / "slow")
    assert "could not be read within 0.1 s" in collector.read(one.pid, collector.Limits(seconds=0.1)).reason


@pytest.mark.parametrize("path, unit, container", [
    ("/system.slice/nginx.service", "nginx.service", ""),
    ("/user.slice/user-0.slice/user@0.service/app.slice/x.scope", "x.scope", ""),
    (f"/system.slice/docker-{'0123456789abcdef' * 4}.scope", f"docker-{'0123456789abcdef' * 4}.scope", "0123456789ab"),
    (f"/kubepods/burstable/pod1/{'ab' * 32}", "", "abababababab"), ("/", "", ""), ("", "", "")])
def test_labels_of_control_groups(monkeypatch, path, unit, container):
    monkeypatch.setattr(labels, "group_of", lambda pid: path)
    found = labels.of(os.getpid())
    assert (found["cgroup"], found["unit"], found["container"], found["pid"]) == (path, unit, container, str(os.getpid()))


@pytest.mark.parametrize("words, said", [
    (["--listen", "nowhere"], "--listen is HOST:PORT, not 'nowhere'"), (["--listen", "127.0.0.1:99999"], "--listen is HOST:PORT"),
    (["--listen", "192.0.2.1:0"], "cannot listen at 192.0.2.1:0"), (["--most", "0"], "--most is 1 or more"),
    (["--most", "x"], "exporter: argument --most"), (["--frob"], "exporter: unrecognized arguments: --frob")])
def test_words_that_are_wrong(words, said):
    run = start(*words)
    text = run.communicate()[1]
    assert run.returncode == 2 and text.startswith("hakmem: ") and text.count("\n") == 1 and said in text


def test_dashboard_and_alerts_name_only_what_is_served(address):
    served = {sample.name for one in families(address).values() for sample in one.samples} | {"hakmem_oom_total"}
    board = json.loads((EXTRAS / "grafana.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) and board["uid"] and len(expressions) > 10
    rules = re.findall(r"expr: (.*)", (EXTRAS / "alerts.yml").read_text(encoding="utf-8"))
    assert len(rules) == (EXTRAS / "alerts.yml").read_text(encoding="utf-8").count("- alert: ")
    for one in expressions + rules:
        assert set(NAME.findall(one)) <= served, one
        assert one.count("(") == one.count(")") and one.count("{") == one.count("}")


def test_dashboard_names_and_colours_each_cause_of_resident_memory():
    board = json.loads((EXTRAS / "grafana.json").read_text(encoding="utf-8"))
    panel = next(one for one in board["panels"] if "hakmem_resident_cause_bytes" in one["targets"][0]["expr"])
    shown = {one["matcher"]["options"]: {each["id"]: each["value"] for each in one["properties"]}
             for one in panel["fieldConfig"]["overrides"]}
    causes = re.findall(r"^OBS_CAUSE\((\w+)", (ROOT / "observe" / "causes.def").read_text(encoding="utf-8"), re.M)
    assert list(shown) == causes and len({one["displayName"] for one in shown.values()}) == len(causes)
    assert {cause: one["color"]["fixedColor"] for cause, one in shown.items()} == {cause: colours.CAUSES[cause] for cause in causes}
