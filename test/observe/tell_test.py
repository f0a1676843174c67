#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does a running process do what `hakmem-observe tell` asks of it?

    tell_test.py OBSERVER PROGRAM

PROGRAM (told.c) allocates only when it is told to, so that nothing here depends on time: a letter to a process that allocates
nothing is not answered, however long one waits.
Exit status: 0 all is well, 1 not, 77 skipped with a reason.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import core_file
from observing import document, observe, refused, require_reading

HARDENED = os.environ.get("HAKMEM_FLAVOUR") == "hardened"
FOREVER = ("--wait", "1000000")
NOW = ("--wait", "0")
TELLERS = 6
NO_VALUE = "takes no such value: docs/options.md has those of each option"
AT_START = "reads that option only at its start: start it with that in HAKMEM_OPTIONS"


class Told:
    """The program."""

    def __init__(self, process):
        self.process, self.pid = process, process.pid
        self.answer()

    def answer(self):
        return int(self.process.stdout.readline())

    def do(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        return self.answer()


@contextlib.contextmanager
def told(program, options=""):
    environment = {**os.environ, "HAKMEM_PROFILE": "balanced" if not HARDENED else "hardened", "HAKMEM_OPTIONS": options}
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Told(process)
        finally:
            process.stdin.close()
            process.wait()


def tell(observer, program, *words):
    """Tells it, and lets it allocate until the teller has its answer."""
    with subprocess.Popen([observer, "tell", str(program.pid), *words, *FOREVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as teller:
        while teller.poll() is None:
            program.do("t")
        return teller.returncode, *teller.communicate()


def done(observer, program, *words):
    status, out, error = tell(observer, program, *words)
    assert status == 0 and error == "" and out.startswith(f"process {program.pid}: done"), (words, status, out, error)
    return out


def not_done(observer, text, program, *words):
    status, out, error = tell(observer, program, *words)
    assert status == 1 and out == "", (words, status, out, error)
    assert error == f"hakmem-observe: process {program.pid} {text}\n", (words, error)


def not_yet(observer, text, pid, *words):
    status, out, error = observe(observer, "tell", pid, *words, *NOW)
    assert status == 2 and out == "", (words, status, out, error)
    assert error.startswith(f"hakmem-observe: process {pid} has not answered yet") and text in error, (words, error)
    assert error.count("\n") == 1


def budget(observer, program):
    """The option cache times the processors: 4 MiB each unless another is set."""
    return document(observer, "stats", program.pid)["limits"]["cache_budget_bytes"]


def option(observer, program, name):
    """In force, and by default."""
    status, text, error = observe(observer, "options", program.pid)
    assert status == 0 and error == "", error
    return next((one["value"], one["default"]) for one in json.loads(text)["options"] if one["name"] == name)


def requests(observer, program):
    assert "RSS" in done(observer, program, "trim")
    done(observer, program, "flush")
    done(observer, program, "rate", "16k")
    found = document(observer, "profile", program.pid)
    assert found["is_on"] and found["rate"] == 16 << 10
    program.do("t")
    assert document(observer, "profile", program.pid)["samples"]["taken"] > 0
    done(observer, program, "rate", "0")
    found = document(observer, "profile", program.pid)
    assert not found["is_on"] and found["sites"]
    done(observer, program, "reset")
    assert not document(observer, "profile", program.pid)["sites"]
    for rate in ("2t", "often", "1k1"):
        not_done(observer, "takes no such value: rate needs bytes, such as 512k, at most 1t", program, "rate", rate)
    assert option(observer, program, "retain_idle") == ("1m", "1m")
    done(observer, program, "option", "retain_idle:2m")
    assert option(observer, program, "retain_idle") == ("2m", "1m") and option(observer, program, "learn") == ("1", "1")
    not_done(observer, NO_VALUE, program, "option", "retain_idle:2t")
    not_done(observer, NO_VALUE, program, "option", "retain_idle=")
    not_done(observer, "knows no such option: the command options lists them", program, "option", "retain_idl:2m")
    not_done(observer, AT_START, program, "option", "force_libc:1")
    if HARDENED:
        not_done(observer, AT_START, program, "option", "cache:1m")
    else:
        before = budget(observer, program)
        done(observer, program, "option", "cache:1m")
        assert before == 4 * budget(observer, program), before


def waits(observer, program):
    """What nobody has answered waits there, and others are not sent; then it is done, and the next may come."""
    not_yet(observer, "when it next allocates", program.pid, "rate", "32k")
    not_yet(observer, "nothing was sent", program.pid, "rate", "8k")
    assert not document(observer, "profile", program.pid)["is_on"]
    program.do("t")
    assert document(observer, "profile", program.pid)["rate"] == 32 << 10
    done(observer, program, "rate", "0")


def taken_back(observer, program):
    """A brief request is gone when its teller is: at the end of its time, of a stopped process, too, and at an interrupt."""
    os.kill(program.pid, signal.SIGSTOP)
    not_yet(observer, "the request was taken back", program.pid, "rate", "32k", "--brief")
    os.kill(program.pid, signal.SIGCONT)
    program.do("t")
    assert not document(observer, "profile", program.pid)["is_on"]
    with subprocess.Popen([observer, "tell", str(program.pid), "rate", "32k", "--brief", *FOREVER], stderr=subprocess.PIPE,
                          text=True) as teller:
        while "nothing was sent" not in observe(observer, "tell", program.pid, "flush", "--brief", *NOW)[2]:
            assert teller.poll() is None
        teller.send_signal(signal.SIGINT)
        assert "the request was taken back" in teller.communicate()[1] and teller.returncode == 2
    program.do("t")
    assert not document(observer, "profile", program.pid)["is_on"]
    done(observer, program, "rate", "8k", "--brief")
    assert document(observer, "profile", program.pid)["rate"] == 8 << 10
    done(observer, program, "rate", "0")


def many(observer, program):
    """Several at a time all get their answers."""
    commands = [[observer, "tell", str(program.pid), "option", f"retain_idle:{i}m", *FOREVER] for i in range(TELLERS)]
    tellers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
    while any(teller.poll() is None for teller in tellers):
        program.do("t")
    for teller in tellers:
        out, error = teller.communicate()
        assert teller.returncode == 0 and out == f"process {program.pid}: done\n" and error == "", (out, error)


def fork(observer, program):
    """The child does not do what waits for its parent, nor does the parent what is for the child."""
    not_yet(observer, "when it next allocates", program.pid, "rate", "64k")
    child = program.do("f")
    not_yet(observer, "when it next allocates", child, "rate", "4k")
    program.do("t")
    assert document(observer, "profile", program.pid)["rate"] == 64 << 10
    assert not document(observer, "profile", child)["is_on"]
    done(observer, program, "rate", "0")


def execute(observer, program):
    """A letter is gone with the program that it was for."""
    not_yet(observer, "when it next allocates", program.pid, "rate", "64k")
    program.do("e")
    program.do("t")
    assert not document(observer, "profile", program.pid)["is_on"]
    done(observer, program, "flush")


def sandboxed(observer, program):
    program.do("s")
    for words in (("rate", "64k"), ("option", "profile_rate:64k")):
        refused(observer, "has a seccomp filter", "tell", program.pid, *words)
    done(observer, program, "flush")
    done(observer, program, "rate", "64k", "--force")
    assert document(observer, "profile", program.pid)["is_on"]


def bad(observer, program):
    """Each mistake in the words is one line, which names what is there."""
    pid, there = program.pid, "there are: trim, flush, reset, rate BYTES, option NAME:VALUE"
    for words, said in (((), f"a PID and a request are wanted: {there.partition(': ')[2]}"), (("trim",), "a PID and a request are wanted"),
                        ((pid,), "a PID and a request are wanted"), ((pid, "shout"), f"unknown request 'shout'; {there}"),
                        ((pid, "trmi"), f"unknown request 'trmi' (did you mean trim?); {there}"),
                        ((pid, "rset", "1"), "unknown request 'rset' (did you mean reset?)"),
                        ((pid, "fulsh"), "unknown request 'fulsh' (did you mean flush?)"),
                        ((pid, "options", "learn:0"), "unknown request 'options' (did you mean option?)"),
                        ((pid, "r" * 4000), "unknown request 'rrrr"), ((pid, ""), "unknown request ''; "),
                        ((pid, "rate"), "rate needs BYTES"), ((pid, "option"), "option needs NAME:VALUE"),
                        ((pid, "option", "learn"), "option needs NAME:VALUE, such as retain_idle:0, not 'learn'"),
                        ((pid, "option", "a" * 20 + ":1"), "option needs NAME:VALUE, such as retain_idle:0, not 'aaaa"),
                        ((pid, "rate", "1" * 32), "rate needs BYTES, such as 512k or 0, not '1111"), ((pid, "trim", "1"), "trim takes no value: leave '1' out"),
                        ((pid, "rate", "1", "2"), "too many words: leave '2' out"),
                        ((pid, "trim", "--frob"), "unknown option '--frob'; there are: --wait SECONDS, --brief, --force"),
                        ((pid, "trim", "--wait"), "--wait needs seconds, 0 to 1000000, not ''"),
                        ((pid, "trim", "--wait", "long"), "--wait needs seconds, 0 to 1000000, not 'long'"),
                        ((pid, "trim", "--wait", "-1"), "--wait needs seconds"), (("1x", "trim"), "'1x' is no PID; the command ps lists them"),
                        (("0", "trim"), "'0' is no PID")):
        status, out, error = observe(observer, "tell", *words)
        assert status == 1 and out == "" and error.startswith(f"hakmem-observe: tell: {said}") and error.count("\n") == 1, (words, error)
    refused(observer, "there is no process 2147483647; the command ps lists those on hakmem", "tell", 2147483647, "trim")
    with subprocess.Popen(["sleep", "600"], env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}) as other:
        try:
            while Path(f"/proc/{other.pid}/comm").read_text() != "sleep\n":  # nobody may read it in the middle of its exec
                time.sleep(0.001)
            status, _, error = observe(observer, "tell", other.pid, "trim")
        finally:
            other.kill()
    assert status == 1 and "does not use hakmem; start it by hakmem run" in error and error.count("\n") == 1, error
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder, "core")
        core_file.write(program.pid, core)
        assert observe(observer, "tell", core, "trim")[2] == f"hakmem-observe: tell: '{core}' is no PID; the command ps lists them\n"


def main():
    observer, path = sys.argv[1:]
    require_reading()
    with told(path) as program:
        requests(observer, program)
        waits(observer, program)
        taken_back(observer, program)
        many(observer, program)
        fork(observer, program)
        execute(observer, program)
        bad(observer, program)
        sandboxed(observer, program)
    if os.environ.get("HAKMEM_FLAVOUR") != "musl":  # whose malloc has no second name
        with told(path, "force_libc:1") as program:
            status, _, error = observe(observer, "tell", program.pid, "trim")
            assert status == 1 and "refuses: " in error, error
    print(json.dumps({"tellers": TELLERS}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
