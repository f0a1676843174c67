# SPDX-License-Identifier: MIT
"""`profile -- PROGRAM`: its status is passed on, its profile is shown. The launcher is a fake that leaves one."""
import json
import os
import subprocess
import sys

import pytest
import synthetic
from conftest import TOOL
from test_program import run  # noqa: F401  (the fixture)


@pytest.fixture
def left(tmp_path) -> str:
    """The shell line that leaves a profile."""
    (tmp_path / "left.json").write_text(json.dumps(synthetic.document(synthetic.standard())), encoding="utf-8")
    return f'cat "{tmp_path}/left.json" >"$file"'


def options(tmp_path) -> str:
    return (tmp_path / "options").read_text(encoding="utf-8").strip()


def test_profile_at_the_end_of_a_program(run, left, tmp_path):  # noqa: F811
    done = run("profile", "--", "sh", "-c", "echo its words; exit 7", before=left)
    assert done.returncode == 7 and done.stderr == "" and done.stdout.startswith("its words\nsh (process 4711) at its end: 100 MiB")
    assert "program+0x1100" in done.stdout
    assert options(tmp_path).startswith("profile_rate:524288,report:profile,report_file:")


def test_rate_is_the_users(run, left, tmp_path):  # noqa: F811
    run("profile", "--rate", "64k", "--", "true", before=left, HAKMEM_OPTIONS="learn:0,profile_rate:9")
    assert options(tmp_path).startswith("learn:0,profile_rate:9,profile_rate:65536,report:profile")
    run("profile", "--", "true", before=left, HAKMEM_OPTIONS="learn:0,profile_rate:9")
    assert options(tmp_path).startswith("learn:0,profile_rate:9,report:profile")


def test_files_and_difference_of_a_program(run, left, tmp_path):  # noqa: F811
    done = run("profile", "--html", tmp_path / "p.html", "--json", tmp_path / "p.json", "--", "true", before=left)
    assert (done.returncode, done.stdout) == (0, "") and "sh (process" not in (tmp_path / "p.html").read_text()
    assert "true (process 4711) at its end" in (tmp_path / "p.html").read_text()
    done = run("profile", "--diff", tmp_path / "p.json", "--", "true", before=left)
    assert done.returncode == 0 and "Growth is that of 0 ms" in done.stdout


def test_library_and_profile_of_the_launcher_are_passed_on(run, left, tmp_path):  # noqa: F811
    assert run("profile", "--lib", "a b.so", "--profile=debug", "--leaks", "--", "true", before=left).returncode == 0
    assert (tmp_path / "words").read_text(encoding="utf-8") == " run --profile=debug --lib=a b.so\n"


@pytest.mark.parametrize("words, status", [(["sh", "-c", "exit 3"], 3), (["true"], 2), (["sh", "-c", "kill -9 $$"], 137)])
def test_program_that_leaves_no_profile(run, words, status):  # noqa: F811
    done = run("profile", "--", *words, before=":")
    assert (done.returncode, done.stdout) == (status, "")
    assert f"{words[0]} left no profile" in done.stderr and done.stderr.count("\n") == 1


def test_options_that_are_left_aside_are_named(run, left):  # noqa: F811
    said = run("profile", "--", "true", before=left, HAKMEM_OPTIONS="report:exit,learn:0").stderr
    assert said == "hakmem: report of HAKMEM_OPTIONS is left aside: the profile is written\n"


def test_plain_form_runs_programs_too(tmp_path, left):
    launcher = tmp_path / "launch"
    launcher.write_text("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nfile=${HAKMEM_OPTIONS##*report_file:}\n"
                        f"file=${{file%%%p}}$$\n{left}\nexec \"$@\"\n", encoding="utf-8")
    launcher.chmod(0o755)
    code = (f"import sys; sys.path.insert(0, {str(TOOL.parent)!r}); from hakmem_view import own_program, plain; "
            f"own_program.LAUNCHER = {str(launcher)!r}; plain.main(missing='')")
    done = subprocess.run([sys.executable, "-S", "-c", code, "profile", "--peak", "--", "sh", "-c", "exit 5"], capture_output=True,
                          text=True, check=False, env={**os.environ, "HAKMEM_OPTIONS": ""})
    assert done.returncode == 5 and "sh (process 4711) at its end" in done.stdout and "At peak" in done.stdout, done
