# SPDX-License-Identifier: MIT
"""The alert rules and the dashboard's expressions that come with `hakmem exporter`, as Prometheus's own tool reads them."""
import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

EXTRAS = ROOT / "packaging" / "exporter"
pytestmark = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)")


def promtool(*words) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alert_rules_are_read():
    promtool("check", "rules", EXTRAS / "alerts.yml")


def test_expressions_of_the_dashboard_are_read(tmp_path):
    """Its variables as they would be."""
    board = json.loads((EXTRAS / "grafana.json").read_text(encoding="utf-8"))
    expressions = [re.sub(r"\$__\w+", "5m", target["expr"]).replace("$instance", ".*").replace("$name", ".*")
                   for panel in board["panels"] for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(expressions)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}), encoding="utf-8")
    assert len(rules) > 10
    promtool("check", "rules", tmp_path / "rules.yml")


@pytest.mark.parametrize("alert, series, fires", [
    ("HakmemFragmented", {"hakmem_rss_bytes": 3e9, "hakmem_resident_cause_bytes": 2e9}, True),
    ("HakmemFragmented", {"hakmem_rss_bytes": 5e9, "hakmem_resident_cause_bytes": 2e9}, False),
    ("HakmemFragmented", {"hakmem_rss_bytes": 1e9, "hakmem_resident_cause_bytes": 9e8}, False),
    ("HakmemKeepsUnused", {"hakmem_rss_bytes": 3e9, "hakmem_unused_dirty_bytes": 2e9}, True),
    ("HakmemKeepsUnused", {"hakmem_rss_bytes": 5e9, "hakmem_unused_dirty_bytes": 2e9}, False),
    ("HakmemMemoryTight", {"hakmem_memory_is_tight": 1}, True), ("HakmemMemoryTight", {"hakmem_memory_is_tight": 0}, False)])
def test_alerts_fire_when_they_should(tmp_path, alert, series, fires):
    text = (EXTRAS / "alerts.yml").read_text(encoding="utf-8")
    severity, summary = re.search(rf'alert: {alert}\n.*?severity: (\w+)\n.*?summary: "(.*?)"\n', text, re.S).groups()
    labels = {"pid": "7", "name": "shop"}
    inputs, fired = [], dict(labels, severity=severity)
    for name, value in series.items():
        own = dict(labels, cause="slab_free") if name.endswith("_cause_bytes") else labels
        fired.update(own)
        words = ",".join(f'{key}="{word}"' for key, word in own.items())
        inputs.append({"series": f"{name}{{{words}}}", "values": f"{value:.0f}+0x120"})
    summary = summary.replace("{{ $labels.name }}", "shop").replace("{{ $labels.pid }}", "7")
    expected = [{"exp_labels": fired, "exp_annotations": {"summary": summary}}] if fires else []
    test = {"interval": "1m", "input_series": inputs,
            "alert_rule_test": [{"eval_time": "2h", "alertname": alert, "exp_alerts": expected}]}
    whole = {"rule_files": [str(EXTRAS / "alerts.yml")], "tests": [test]}
    (tmp_path / "test.yml").write_text(json.dumps(whole), encoding="utf-8")
    promtool("test", "rules", tmp_path / "test.yml")
