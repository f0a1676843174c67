# SPDX-License-Identifier: MIT
"""Readers of others open our files: the Go package of pprof, which Pyroscope, Parca and Grafana read by, and Speedscope's
page in a headless Chromium. They come from their registries; without these, or without their tools, the tests skip."""
import functools
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

import leaky
import pytest
from test_profile_formats import parsed

from hakmem_lab import browser

GO = """package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	for _, path := range os.Args[1:] {
		file, err := os.Open(path)
		if err != nil {
			panic(err)
		}
		found, err := profile.Parse(file)
		if err == nil {
			err = found.CheckValid()
		}
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		for at, kind := range found.SampleType {
			var sum int64
			for _, sample := range found.Sample {
				sum += sample.Value[at]
			}
			fmt.Println(kind.Type, sum)
		}
	}
}
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    path = folder / "profile.json"
    path.write_text(json.dumps(leaky.document(leaky.compiled(folder))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def go_reader(tmp_path_factory):
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(GO, encoding="utf-8")
    env = {**os.environ, "GOMODCACHE": str(folder / "modules"), "GOFLAGS": "-modcacherw"}
    for words in (["mod", "init", "reader"], ["mod", "tidy"], ["build", "-o", "reader", "."]):
        try:
            done = subprocess.run(["go", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"go {' '.join(words[:2])} does not end: no network?")
        if done.returncode != 0 and "tidy" in words:
            pytest.skip(f"go got no github.com/google/pprof: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done
    return folder / "reader"


@leaky.COMPILER
def test_the_go_package_of_pprof_finds_the_file_valid_and_sums_it_as_we_do(view, stored, go_reader, tmp_path):
    assert view("profile", "--pprof", tmp_path / "heap.pb.gz", stored).returncode == 0
    made = parsed((tmp_path / "heap.pb.gz").read_bytes())
    expected = {made.string_table[one.type]: sum(sample.value[at] for sample in made.sample)
                for at, one in enumerate(made.sample_type)}
    shown = subprocess.run([go_reader, tmp_path / "heap.pb.gz"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert {line.split()[0]: int(line.split()[1]) for line in shown.splitlines()} == expected
    (tmp_path / "cut").write_bytes((tmp_path / "heap.pb.gz").read_bytes()[:200])
    assert subprocess.run([go_reader, tmp_path / "cut"], capture_output=True, timeout=60, check=False).returncode == 1


# --- Speedscope -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speedscope(tmp_path_factory):
    """open(file) → the text of Speedscope's page after it loaded the file, or none."""
    if shutil.which("npm") is None or browser.find() is None:
        pytest.skip("npm or chromium is not installed")
    folder = tmp_path_factory.mktemp("speedscope")
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "speedscope@1"], cwd=folder,
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm got no speedscope: {done.stderr.strip()[-200:]}")
    root = folder / "node_modules/speedscope/dist/release"

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def opened(path=None):
            page = f"http://127.0.0.1:{server.server_address[1]}/index.html"
            if path is not None:
                shutil.copy(path, root / path.name)
                page += f"#profileURL=/{path.name}&title=ours"
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
                text = subprocess.run([browser.find(), *browser.FLAGS, f"--user-data-dir={own}", "--virtual-time-budget=15000",
                                       "--dump-dom", page], capture_output=True, text=True, timeout=120, check=True).stdout
            return html.unescape(re.sub(r"<[^>]+>", "|", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)))
        yield opened
        server.shutdown()
        thread.join()


@leaky.COMPILER
def test_speedscope_opens_our_files(view, stored, speedscope, tmp_path):
    files = {"speedscope": tmp_path / "a.json", "pprof": tmp_path / "b.pb.gz", "collapsed": tmp_path / "c.folded"}
    assert view("profile", *(word for name, path in files.items() for word in (f"--{name}", path)), stored).returncode == 0
    for name, path in files.items():
        text = speedscope(path)
        assert "Left Heavy" in text and "ours" in text, (name, text)  # the views of a loaded profile
    assert re.search(r"\(\d/6\)", speedscope(files["speedscope"]))  # one for each kind of figure
    assert "Left Heavy" not in speedscope()
