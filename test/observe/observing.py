# SPDX-License-Identifier: MIT
"""Loads to look at, and the observer: for the tests of this folder."""
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

SKIP = 77
SEPARATOR = "---\n"


def require_reading():
    """Skips where the kernel lets no process read another that is not its child."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if os.geteuid() != 0 and scope.exists() and scope.read_text().strip() != "0":
        print("skipped: kernel.yama.ptrace_scope lets only root read other processes")
        sys.exit(SKIP)


@contextlib.contextmanager
def load(program, options, *words, names=("explain", "stats", "map"), **how):
    """A running load: the process, and the documents of these names that it wrote last."""
    environment = {**os.environ, "HAKMEM_PROFILE": "balanced", "HAKMEM_OPTIONS": options}
    with subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
                          **how) as process:
        text = ""
        while not text.endswith(SEPARATOR + "done\n"):
            line = process.stdout.readline()
            if not line:
                sys.exit(f"the load ended with {process.wait()}: {text[-500:]}")
            text += line
        documents = [json.loads(part) for part in text.split(SEPARATOR)[:-1]]
        try:
            yield process, dict(zip(names, documents[-len(names):]))
        finally:
            process.stdin.close()
            process.wait()


def observe(observer, *words):
    """Status, standard output, standard error."""
    run = subprocess.run([observer, *map(str, words)], capture_output=True, text=True, timeout=600, check=False)
    return run.returncode, run.stdout, run.stderr


def refused(observer, text, *words):
    status, out, error = observe(observer, *words)
    assert status == 1 and out == "", (words, status, out[:200], error)
    assert error.startswith("hakmem-observe: ") and error.count("\n") == 1 and error.endswith("\n"), (words, error)
    assert text in error, (words, error)


def document(observer, verb, target, *words):
    status, text, error = observe(observer, verb, target, "--json", *words)
    assert status == 0, error
    return json.loads(text)


def differences(a, b, path=""):
    """The paths at which two documents differ, with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from differences(a.get(key), b.get(key), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}[{i}]")
    elif a != b:
        yield path, a, b


def causes(document):
    return {cause["name"]: cause for cause in document["causes"]}
