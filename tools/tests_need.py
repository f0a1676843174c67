#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which targets of a configured build folder the tests that are chosen need.

    tests_need.py BUILD [--config NAME]... [CTEST WORDS]...     (words: -R, -L, -LE as ctest has them)

Prints "lab" if a test needs the lab's environment, then the targets for ninja. Nothing at all: no test is chosen.
A test needs every file of the build that its command or its environment names; scripts need the libraries, too, which
their environment always names.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = ("hakmem", "hakmem_static")
ALWAYS = ("libhakmem.so", "libhakmem.a")  # in every test's environment


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def chosen(build, config, words):
    named = ["-C", config] if config else []
    found = json.loads(output("ctest", "--test-dir", build, "--show-only=json-v1", *named, *words))
    return {test["name"]: test for test in found["tests"]}


def commands(build):
    """By test name, from what CMake wrote: ctest tells no command whose program was not built yet."""
    found = {}
    for path in Path(build).rglob("CTestTestfile.cmake"):
        for name, words in re.findall(r'^ *add_test\(\[=\[(.*?)\]=\] (.*)\)$', path.read_text(encoding="utf-8"), re.M):
            found[name] = re.findall(r'"([^"]*)"', words)
    return found


def properties(test, name):
    return next((entry["value"] for entry in test.get("properties", []) if entry["name"] == name), [])


def words_of(test, command):
    """Where a test may name a file."""
    yield from command
    for pair in properties(test, "ENVIRONMENT"):
        value = pair.partition("=")[2]
        yield from (word for word in (value, *value.split(":")) if Path(word).name not in ALWAYS)


def targets(tests, build):
    known = {line.partition(":")[0] for line in output("ninja", "-C", build, "-t", "targets", "all").splitlines()
             if not line.startswith("/")}
    found, all_commands = set(), commands(build)
    for test in tests:
        command = all_commands[test["name"]]
        found |= {word.removeprefix(build + "/") for word in words_of(test, command)} & known
        if command[0].removeprefix(build + "/") not in known:
            found |= set(LIBRARIES) & known
    return found


def main():
    build, words = str(Path(sys.argv[1]).resolve()), sys.argv[2:]
    configs = [""]
    while words[:1] == ["--config"]:
        configs.append(words[1])
        words = words[2:]
    tests = {}
    for config in configs:
        tests.update(chosen(build, config, words))
    if not tests:
        return
    if any("lab" in properties(test, "LABELS") for test in tests.values()):
        print("lab")
    print("\n".join(sorted(targets(tests.values(), build)) or ["build.ninja"]))


if __name__ == "__main__":
    main()
