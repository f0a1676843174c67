# SPDX-License-Identifier: MIT
"""The commands as users type them, on small loads: results, tables, bad words, crashes, hangs, interruption."""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import forked
import pytest
from hakmem_lab import cli, place, records  # noqa: F401  (cli: loaded once, for all commands)

CRASHES = """
#include <stddef.h>
#include <stdlib.h>
extern void *__libc_malloc(size_t);
static unsigned calls;
void *malloc(size_t size) { if (++calls > 2000) { %s } return __libc_malloc(size); }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A place of its own for runs; the compiled workloads and the peers are the ordinary ones."""
    here = tmp_path_factory.mktemp("lab")
    for name in ("store", "bench-build", "peers"):
        (place.LAB / name).mkdir(parents=True, exist_ok=True)
        (here / name).symlink_to(place.LAB / name)
    return here


@pytest.fixture(scope="module")
def lab(folder):
    def run(*words, status=0, timeout=1200):
        env = {**os.environ, "HAKMEM_LAB_DIR": str(folder), "PYTHONPATH": str(place.ROOT / "tools")}
        done = forked.run(place.ROOT / "tools" / "lab.py", list(words), env, timeout, anew="hakmem_lab")
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done
    return run


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Libraries that crash and hang after a while."""
    here = tmp_path_factory.mktemp("broken")
    for name, body in (("crash", "abort();"), ("hang", "for (;;) { }")):
        source = here / f"{name}.c"
        source.write_text(CRASHES % body)
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-fno-builtin", "-o", here / f"{name}.so",
                        source], check=True)
    return here


def last(folder):
    return records.Run(records.folders(folder / "runs")[-1])


def test_run_prints_tables_and_keeps_everything(lab, folder):
    done = lab("run", "random_mixed/400", "burst", "--peers", "glibc", "--rounds", "3", "--scale", "0.01")
    assert re.search(r"random_mixed/400 .*│", done.stdout) and "geometric means" in done.stdout
    run = last(folder)
    assert run.complete and not run.of("failure")
    times = [sample for sample in run.of("time") if sample["row"] == "random_mixed/400"]
    arms = {sample["arm"] for sample in times}
    assert arms == {"hakmem", "hakmem~again", "glibc", "ideal"} and len(times) == 3 * len(arms)
    assert all(sample["value"] > 0 and sample["hwm_kib"] > 500 for sample in times)
    memory = [sample for sample in run.of("memory") if sample["row"] == "random_mixed/400"]
    assert all(sample["after_kib"] > 0 and sample["curve"] for sample in memory)
    assert (run.path.parent / "report.html").stat().st_size > 100_000
    versions = {arm.name: arm.version for arm in run.header.arms}
    assert re.match(r"\d+\.\d+", versions["hakmem"]) and re.match(r"2\.\d+", versions["glibc"])


def test_bad_words_name_the_valid_ones(lab):
    for words, valid in ((("run", "nosuch"), "larson"), (("run", "--peers", "nosuch"), "glibc"),
                         (("run", "--nosuch"), "--rounds"), (("nosuch",), "syscalls"),
                         (("ab", "nosuch:1"), "bin_bytes"), (("ab", "hakmem", "hakmem"), "both sides"),
                         (("run", "--base", "uclibc"), "musl newest"), (("run", "--lib", "x"), "name=path"),
                         (("run", "--lib", "x=/nonexistent.so"), "no file"), (("report", "nosuch"), "unknown run"),
                         (("run", "--quick", "--full"), "either"),
                         (("run", "--peers", "hakmem@nosuch"), "low-memory"), (("run", "--rounds", "x"), "integer"),
                         (("peers", "nosuch"), "glibc"), (("run", "--"), "no program")):
        done = lab(*words, status=2)
        assert re.search(valid, done.stderr), f"{words}: {done.stderr}"


def test_crash_and_hang_are_recorded_and_the_rest_goes_on(lab, folder, broken):
    lab("run", "random_mixed/400", "--peers", "glibc,crash,hang", "--lib", f"crash={broken / 'crash.so'}", "--lib",
        f"hang={broken / 'hang.so'}", "--rounds", "2", "--scale", "0.01", "--timeout", "3")
    run = last(folder)
    failures = {sample["arm"]: sample["reason"] for sample in run.of("failure")}
    assert run.complete and set(failures) == {"crash", "hang"}
    assert "SIGABRT" in failures["crash"] and failures["hang"] == "no end after 3 s"
    assert len([sample for sample in run.of("time") if sample["arm"] == "glibc"]) == 2


@pytest.fixture
def started(folder):
    """started("run", …) → a lab that goes on; it has ended when the test has, however that ended."""
    labs = []

    def interruptible():  # also where the tests run in the background, which ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def start(*words):
        env = {**os.environ, "HAKMEM_LAB_DIR": str(folder), "PYTHONPATH": str(place.ROOT / "tools")}
        labs.append(subprocess.Popen([sys.executable, "-m", "hakmem_lab", *words], env=env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True, preexec_fn=interruptible))
        return labs[-1]
    yield start
    for one in labs:
        if one.poll() is None:
            one.kill()  # what it measures ends with it: bench/rig/measure.c asks for that
            one.communicate()


def test_interrupted_run_goes_on(lab, folder, started):
    before = set(records.folders(folder / "runs"))
    process = started("run", "random_mixed", "--peers", "glibc", "--rounds", "3", "--scale", "0.05")
    while not any(len(records.Run(one).of("time")) >= 3 for one in set(records.folders(folder / "runs")) - before):
        assert process.poll() is None, "nothing was measured"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130 and "--resume" in errors
    cut = last(folder)
    assert not cut.complete and cut.of("time")
    lab("run", "--resume")
    run = last(folder)
    assert run.complete and run.header.id == cut.header.id
    keys = [(s["kind"], s["row"], s["arm"], s["round"]) for s in run.samples]
    assert len(keys) == len(set(keys))
    assert lab("run", "--resume", status=1).stderr.count("\n") <= 2


def test_run_that_was_cut_before_its_first_sample_begins_anew(lab, folder):
    lab("run", "random_mixed/400", "--peers", "glibc", "--rounds", "2", "--scale", "0.01")
    path = last(folder).path
    head = json.loads(path.read_text().splitlines()[0])
    head["arms"][0]["sha256"] = "of a library that was built anew since"
    path.write_text(json.dumps(head) + "\n")
    lab("run", "--resume")
    run = last(folder)
    assert run.complete and run.path == path and run.header.id == head["id"]
    assert run.header.arms[0].sha256 != head["arms"][0]["sha256"] and len(run.of("time")) == 8


def test_own_program(lab, folder):
    lab("run", "--peers", "glibc", "--rounds", "2", "--", "sh", "-c", "exit 0")
    run = last(folder)
    assert [row.id for row in run.header.rows] == ["own/sh"] and len(run.of("time")) == 6
    lab("run", "--peers", "glibc", "--rounds", "2", "--", "sh", "-c", "echo no >&2; exit 7")
    assert "exit status 7: no" in last(folder).of("failure")[0]["reason"]


@pytest.mark.parametrize("words", [["run"], ["ab", "force_libc"], ["syscalls"]], ids=lambda words: words[0])
def test_program_that_is_not_there_is_one_line_and_leaves_nothing(lab, folder, words):
    before = sorted((folder / "runs").iterdir()) if (folder / "runs").exists() else []
    done = lab(*words, "--", "nosuchprog", status=2)
    assert done.stderr == "lab: there is no program 'nosuchprog' that can be started\n" and done.stdout == ""
    assert (sorted((folder / "runs").iterdir()) if (folder / "runs").exists() else []) == before


def test_what_a_program_leaves_behind_is_ended(lab, folder):
    lab("run", "--peers", "glibc", "--rounds", "1", "--", "sh", "-c", "sleep 987654 & exit 0")
    assert not subprocess.run(["pgrep", "-f", "sleep 98765[4]"], capture_output=True, check=False).stdout
    assert not last(folder).of("failure")


def test_a_program_without_the_library_is_a_failure(lab, folder, tmp_path):
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text("#include <unistd.h>\nint main(void) { usleep(200000); return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-static", "-o", program, source], check=True)
    lab("run", "--peers", "glibc", "--rounds", "1", "--", str(program))
    assert {sample["reason"] for sample in last(folder).of("failure")} == {
        "the library was not loaded (a static or set-uid program?)"}


def test_the_callers_python_path_reaches_the_program(lab, folder, tmp_path):
    (tmp_path / "mine.py").write_text("")
    env = {**os.environ, "HAKMEM_LAB_DIR": str(folder), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, place.ROOT / "tools" / "lab.py", "run", "--peers", "glibc", "--rounds", "1",
                           "--", sys.executable, "-c", "import mine"], env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and not last(folder).of("failure"), done.stderr


def test_two_labs_do_not_measure_at_once(lab, folder):
    with open(folder / ".measuring", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = lab("run", "random_mixed/400", "--peers", "glibc", "--rounds", "1", "--scale", "0.01", status=1)
    assert "another lab is measuring" in done.stderr


def test_an_unusable_place_is_one_line(folder):
    env = {**os.environ, "HAKMEM_LAB_DIR": "/proc/nothing", "PYTHONPATH": str(place.ROOT / "tools")}
    done = subprocess.run([sys.executable, "-m", "hakmem_lab", "run", "burst"], env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("lab: ") and done.stderr.count("\n") == 1


def test_ab_writes_the_ledger(lab, folder, tmp_path):
    entry = tmp_path / "0042-idea.md"
    done = lab("ab", "force_libc", "hakmem", "random_mixed/400", "--rounds", "3", "--scale", "0.02", "--ledger",
               str(entry))
    assert re.search(r"random_mixed/400", done.stdout)
    line = r"\| random_mixed/400[ ~⇅]* \|.*\| (GO|NEUTRAL|NO-GO) \((time|instructions|noisy)\)"
    assert re.search(line, entry.read_text()) and "geometric means" in entry.read_text()


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing")
def test_three_percent_more_instructions_are_a_no_go(lab, tmp_path):
    """The library with 3 % more instructions on the hit path: found whatever the machine's noise."""
    library = tmp_path / "slower.so"
    source = place.ROOT / "src"
    copy = tmp_path / "src"
    shutil.copytree(source, copy)
    fast = copy / "front" / "fast.h"
    begin = "HAK_INLINE void hak_fast_free(void *block) {\n"
    text = fast.read_text()
    assert text.count(begin) == 1
    fast.write_text(text.replace(begin, begin + '    __asm__ volatile("nop\\n\\tnop");\n'))
    flags = json.loads((place.ROOT / "build" / "release" / "compile_commands.json").read_text())
    objects = []
    for unit in ("unity.c", "cold.c"):
        command = next(entry["command"] for entry in flags if entry["file"] == str(source / unit)
                       and "HAK_SHARED=1" in entry["command"])
        command = command.replace(str(source / unit), str(copy / unit)).replace(f"-I{source}", f"-I{copy}")
        objects.append(tmp_path / (unit + ".o"))
        command = re.sub(r"-o \S+", f"-o {objects[-1]}", command)
        subprocess.run(command, shell=True, check=True, cwd=place.ROOT / "build" / "release")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", library, *objects], check=True)
    done = lab("ab", str(library), "hakmem", "random_mixed/400", "--rounds", "2", "--scale", "0.02")
    assert re.search(r"random_mixed/400.*NO-GO \(instructions\)", done.stdout), done.stdout


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
def test_syscalls(lab):
    done = lab("syscalls", "random_mixed/400", "--peers", "glibc", "--scale", "0.01")
    assert re.search(r"│ all +│ +\d+ │ +\d+ │", done.stdout) and "mmap" in done.stdout


def test_latency_list_peers_and_health(lab):
    done = lab("latency", "latency/mixed", "--peers", "glibc", "--rounds", "2", "--scale", "0.02")
    assert re.search(r"latency/mixed │ hakmem +│( +[\d,.]+ │){5,}", done.stdout)
    assert "random_mixed/400" in lab("list").stdout
    assert "libhakmem.so" in lab("peers", "hakmem", "glibc").stdout
    done = lab("health", "--rounds", "2", "--scale", "0.01")
    assert "healthy" in done.stdout and "times are not compared" in done.stdout
