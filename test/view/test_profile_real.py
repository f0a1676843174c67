# SPDX-License-Identifier: MIT
"""Planted leaks in programs of four languages and in redis-server are named at function and line by the real library."""
import contextlib
import html
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import leaky
import pytest
from test_profile_formats import jeprof, parsed
from test_observer import core_file
from test_real import LIBRARY, OBSERVED, _knows

from hakmem_view import observer, profile_command, profile_formats
from hakmem_view.profile_model import profile

pytestmark = [pytest.mark.skipif(not _knows("profile_rate"), reason="no library that knows the option profile_rate"),
              leaky.COMPILER, OBSERVED]
COMPILE = {"leaky.c": ["cc", "-g", "-O2"], "leaky.cpp": ["c++", "-g", "-O2"],
           "leaky.rs": ["rustc", "-g", "-O", "--crate-name", "leaky"]}
PLANTED = {  # option, column of the page, words of the line, sampling rate, functions
    "leak": ("--leaks", "In use", "the line of the leak", "64k", {
        "leaky.c": "leak_record", "leaky.cpp": "shop::Cache::remember",
        "leaky.rs": "leaky::remember"}),
    "pins": ("--pinned", "Pinned", "the line of the pinned blocks", "4k", {
        "leaky.c": "pin_slab", "leaky.cpp": "shop::open_session",
        "leaky.rs": "leaky::open_session"})}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("planted")


@pytest.fixture
def at_end(view, tmp_path):
    """at_end([option…], program…) → the text at its end and its profile."""
    def run(options: list, *program, rate: str = "64k"):
        stored = tmp_path / "profile.json"
        done = view("profile", "--lib", LIBRARY, "--rate", rate, "--json", stored, "--", *program, timeout=300)
        assert done.returncode == 0, done
        shown = view("profile", *options, stored, width=150)
        assert shown.returncode == 0 and shown.stderr == "", shown
        assert view("profile", *options, "--html", tmp_path / "page.html", stored).returncode == 0
        return shown.stdout, profile(json.loads(stored.read_text(encoding="utf-8")), "it"), stored
    return run


def first_row(text: str) -> str:
    lines = text.splitlines()
    return lines[next(at for at, line in enumerate(lines) if line.startswith("───")) + 1]


def most_on_page(folder, column: str) -> str:
    """Function and line of the site that has most in a column of the page's table."""
    text = (folder / "page.html").read_text(encoding="utf-8")
    rows = re.findall(r"<summary><b>([^<]*)</b> <span class=\"file\">([^<]*)</span>(.*?)</tr>", text, re.S)
    assert rows, text[:2000]
    most = max(rows, key=lambda row: float(re.search(rf'data-name="{column}" data-v="([^"]*)"', row[2])[1]))
    return " ".join(html.unescape(word) for word in most[:2])


def program_of(folder, source):
    words = COMPILE[source]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    program = folder / f"program-{source.replace('.', '-')}"
    subprocess.run([*words, "-o", program, leaky.PROGRAMS / source], check=True)
    return program


@pytest.mark.parametrize("source", list(COMPILE))
@pytest.mark.parametrize("planted", list(PLANTED))
def test_what_is_planted_is_named_at_function_and_line(at_end, folder, source, planted, tmp_path):
    """Of 15 to 32 MiB in blocks of 512 bytes one in 64 lives: at this rate some 60 samples or more."""
    option, column, words, rate, functions = PLANTED[planted]
    text, found, _ = at_end([option], program_of(folder, source), 32, rate=rate)
    line = f"{source}:{leaky.line_of(words, source)}"
    assert f"{functions[source]} at {line}" in first_row(text), text
    most = most_on_page(tmp_path, column)
    assert functions[source] in most and line in most
    if planted == "leak":
        assert sum(site.inuse.bytes for site in found.sites) == pytest.approx(32 << 20, rel=0.4)
        assert abs(found.estimate - found.exact_bytes) < 2 * found.error
    else:
        least = 8 if source == "leaky.c" else 6  # that one lays more
        assert (least << 20) < max(site.pinned for site in found.sites) < (48 << 20)


# --- running processes ----------------------------------------------------------------------------------


@pytest.fixture
def leaking(folder):
    """A program that leaks whatever is written to it, started without any option of the library."""
    own = {key: value for key, value in os.environ.items() if key != "HAKMEM_OPTIONS"}
    one = subprocess.Popen([program_of(folder, "leaky.c"), "1", "wait"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, env={**own, "LD_PRELOAD": str(LIBRARY)})
    assert one.stdout.readline() == b"ready\n"
    yield one
    one.kill()
    one.communicate()


@contextlib.contextmanager
def fed(one):
    """It works meanwhile."""
    ends = threading.Event()

    def feed() -> None:
        while not ends.wait(0.01):
            one.stdin.write(b"x" * 200)
            one.stdin.flush()
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        ends.set()
        feeder.join()


@pytest.fixture
def waiting(leaking):
    with fed(leaking):
        yield leaking


def test_process_without_any_option_is_sampled(view, waiting, tmp_path):
    done = view("profile", "--leaks", "--rate", "16k", "--seconds", "2", waiting.pid, width=150, timeout=120)
    assert done.returncode == 0, done
    assert f"leak_record at leaky.c:{leaky.line_of('the line of the leak')}" in first_row(done.stdout), done.stdout
    assert "blocks allocated before sampling began are not in the profile" in done.stdout
    again = view("profile", "--seconds", "0", "--json", tmp_path / "p.json", waiting.pid)
    assert again.returncode == 0, again
    view("profile", "--stop", waiting.pid)
    assert not profile_command.read(observer.find(str(waiting.pid))).found.is_on


def test_process_that_sleeps_is_sampled_when_it_is_asked_at_work(view, leaking):
    idle = view("profile", "--seconds", "0", leaking.pid)
    assert idle.returncode != 0 and idle.stderr.count("\n") == 1, idle
    assert "the request was taken back: all its threads sleep" in idle.stderr, idle
    with fed(leaking):
        time.sleep(0.5)
        assert not profile_command.read(observer.find(str(leaking.pid))).found.is_on
        done = view("profile", "--leaks", "--rate", "16k", "--seconds", "1", leaking.pid, width=150, timeout=120)
        assert done.returncode == 0 and "leak_record at leaky.c:" in done.stdout, done


def test_sandboxed_service_is_left_alone_and_outlives_the_tool(tmp_path, refuses):
    subprocess.run(["cc", "-O1", "-o", tmp_path / "sandboxed", leaky.PROGRAMS / "sandboxed.c"], check=True)
    with subprocess.Popen([tmp_path / "sandboxed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={"LD_PRELOAD": str(LIBRARY)}) as service:
        assert service.stdout.readline() == "ready\n"
        said = refuses("profile", service.pid, "--seconds", "0")
        assert "has a seccomp filter" in said and "start it with HAKMEM_OPTIONS=profile_rate:512k" in said
        rest, _ = service.communicate()
    assert (service.returncode, rest) == (0, "served\n")


def test_core_file_has_the_profile_of_its_process(view, waiting, tmp_path):
    assert view("profile", "--keep", "--rate", "16k", "--seconds", "1", waiting.pid, timeout=120).returncode == 0
    core_file.write(waiting.pid, tmp_path / "core")
    done = view("profile", tmp_path / "core", width=150)
    assert done.returncode == 0 and "leak_record at leaky.c" in first_row(done.stdout), done
    assert "does not change" in view("profile", "--stop", tmp_path / "core").stderr


def test_forms_of_one_profile_agree(view, waiting):
    assert view("profile", "--keep", "--rate", "16k", "--seconds", "1", waiting.pid, timeout=120).returncode == 0
    where = observer.find(str(waiting.pid))
    where.tell("rate", "0")
    found = profile_command.read(where).found
    rate, sites, maps = jeprof(profile_formats.heap_v2(found))
    assert rate == 1 and maps
    assert sum(values[1] for stack, values in sites.items() if stack) == pytest.approx(found.estimate, rel=0.1)
    one = parsed(where.read("profile", "--format", "pprof"))
    types = [one.string_table[kind.type] for kind in one.sample_type]
    assert types == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    assert sum(sample.value[3] for sample in one.sample) == pytest.approx(found.estimate, rel=0.1)
    assert found.samples["taken"] > 0 and found.samples["dropped"] == 0


@pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed")
def test_growth_of_redis_is_seen_where_it_allocates(view, tmp_path):
    address = tmp_path / "r"
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", address, "--save", "", "--dir", tmp_path],
                              env={**os.environ, "LD_PRELOAD": str(LIBRARY), "HAKMEM_OPTIONS": ""}, stdout=subprocess.DEVNULL)
    try:
        while not address.exists():
            assert server.poll() is None
            time.sleep(0.05)
        stop = threading.Event()

        def fill() -> None:
            """Keys that are never deleted."""
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(str(address))
                for number in range(1_000_000):
                    if stop.is_set():
                        return
                    link.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$12\r\n%012d\r\n$900\r\n%s\r\n" % (number * 100 + at, b"x" * 900)
                                          for at in range(100)))
                    for _ in range(100):
                        while not link.recv(5).endswith(b"\n"):
                            pass
        filler = threading.Thread(target=fill)
        filler.start()
        try:
            done = view("profile", "--leaks", "--rate", "64k", "--seconds", "3", "--json", tmp_path / "p.json", server.pid,
                        timeout=120)
            shown = view("profile", "--leaks", tmp_path / "p.json", width=150)
        finally:
            stop.set()
            filler.join()
        assert done.returncode == 0 and shown.returncode == 0, (done, shown)
        found = profile(json.loads((tmp_path / "p.json").read_text(encoding="utf-8")), "it")
        most = max(found.sites, key=lambda site: site.inuse.bytes)
        modules = {mapping.name for address in most.stack if (mapping := found.mapping(address))}
        assert modules & {"redis-server", "redis-check-rdb"} and most.kept > 0.9, (modules, shown.stdout)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
@pytest.mark.parametrize("source, first", [("leaky.rs", "leaky::remember"), ("leaky.cpp", "remember"), ("leaky.c", "leak_record")])
def test_pprof_names_functions_of_the_program_first(at_end, view, folder, source, first, tmp_path):
    _, _, stored = at_end([], program_of(folder, source), 16)
    assert view("profile", "--pprof", tmp_path / "heap.pb.gz", stored).returncode == 0
    shown = subprocess.run(["go", "tool", "pprof", "-top", tmp_path / "heap.pb.gz"], capture_output=True, text=True, check=True).stdout
    row = shown.splitlines()[next(at for at, line in enumerate(shown.splitlines()) if "flat%" in line) + 1]
    assert first in row.split()[5], shown
