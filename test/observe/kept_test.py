#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The heap profile in the file of the report while the process lives (observe/keep.c): what a process that is killed leaves, its
forked children, and what no file may do to it.

Usage: kept_test.py OBSERVER
"""
import contextlib
import ctypes
import fcntl
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys

from reporting import LIBRARY, SkipTest, run_tests

OBSERVER = sys.argv[1]
KEPT = b"hakmem profile\n\0"
LIST = 256 << 10
WORK = "x = [bytearray(3000 + i) for i in range(4000)]\n"  # some 18 MiB
CHILD = """import os
if os.fork() == 0:
    y = []
    for at in range(20):  # it takes slow paths
        y += [bytearray(3000 + i) for i in range(3000)]
    os.kill(os.getpid(), 9)
os.wait()
"""
DIE = "import os; os.kill(os.getpid(), {})"


STAY = WORK + "print('ready', flush=True); input()"


def environment(folder, name, options=""):
    return dict(os.environ, LD_PRELOAD=LIBRARY, PYTHONMALLOC="malloc",
                HAKMEM_OPTIONS=f"profile_rate:16k,report:profile,report_file:{folder}/{name}{options}")


def left(folder, code, name="kept.%p", before=None, options=""):
    """What a Python program leaves in the folder, and what it says."""
    done = subprocess.run([sys.executable, "-S", "-c", code], env=environment(folder, name, options), preexec_fn=before,
                          capture_output=True, text=True, check=False)
    return {one: open(f"{folder}/{one}", "rb").read() for one in sorted(os.listdir(folder))}, done


def profile_of(path):
    done = subprocess.run([OBSERVER, "profile", path], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_profile_is_that_of_the_moment_at_which_it_was_killed(folder):
    for end in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT):
        files, done = left(folder, WORK + DIE.format(int(end)), "kept")
        assert done.returncode == -end and done.stderr == "" and files["kept"].startswith(KEPT), done
        status, found = profile_of(folder + "/kept")
        assert status == 0 and 16 << 20 < found["estimate"]["live_bytes"] < 40 << 20, found
        assert found["is_whole"] and found["is_on"] and found["exact"]["live_bytes"] is None and "notes" not in found
        assert sum(site["inuse"]["samples"] for site in found["sites"]) == found["samples"]["live"]
        assert any(one["build_id"] for one in found["mappings"] if "libhakmem" in one["path"])
        assert not any(site["pinned_bytes"] for site in found["sites"])
        assert os.stat(folder + "/kept").st_mode & 0o777 == 0o600


def test_report_at_exit_takes_its_place(folder):
    files, _ = left(folder, WORK)
    assert len(files) == 1 and json.loads(files.popitem()[1])["exact"]["live_bytes"] > 0


def test_forked_child_has_a_file_of_its_own_if_its_number_makes_one(folder):
    if os.environ.get("HAKMEM_FLAVOUR") == "hardened":
        raise SkipTest("the hardened library calls no function of the observer while the process runs")
    files, _ = left(folder, WORK + CHILD)
    kinds = sorted(text.startswith(KEPT) for text in files.values())
    assert kinds == [False, True], files.keys()
    child = next(name for name, text in files.items() if text.startswith(KEPT))
    status, found = profile_of(f"{folder}/{child}")
    assert status == 0 and found["pid"] == int(child.rpartition(".")[2]) and not found["is_whole"]
    for name in files:
        os.unlink(f"{folder}/{name}")
    files, _ = left(folder, WORK + CHILD + DIE.format(9), "kept")
    assert list(files) == ["kept"] and profile_of(folder + "/kept")[1]["is_whole"]


def test_child_that_the_c_library_did_not_fork_leaves_the_file_alone(folder):
    number = {"x86_64": 57, "aarch64": 0}[os.uname().machine]
    if not number:
        raise SkipTest("there is no call fork here")
    child = f"""import ctypes, os
call = ctypes.CDLL(None).syscall
child = call({number})
if child == 0:
    x = None
    y = [bytearray(3000 + i) for i in range(9000)]
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    left(folder, WORK + child + DIE.format(9), "kept")
    status, found = profile_of(folder + "/kept")
    assert status == 0 and 16 << 20 < found["estimate"]["live_bytes"] < 40 << 20 and "notes" not in found, found


def test_file_of_a_process_is_neither_emptied_nor_mapped_by_others(folder):
    """By a program with the same option, at its exit; by a forked child, which may have fewer rights."""
    others = f"""import os
os.system("{sys.executable} -S -c 'x = [bytearray(3000) for i in range(4000)]'")
if os.fork() == 0:
    os._exit("{folder}/kept" in open("/proc/self/maps").read())
assert os.wait()[1] == 0
y = [bytearray(3000 + i) for i in range(9000)]
"""
    files, done = left(folder, WORK + others + "os._exit(7)", "kept")
    assert done.returncode == 7 and files["kept"].startswith(KEPT), done
    assert done.stderr.count("\n") == 1 and "can be written there" in done.stderr, done  # of the other program
    status, found = profile_of(folder + "/kept")
    assert status == 0 and found["is_whole"] and found["estimate"]["live_bytes"] > 32 << 20, found
    files, _ = left(folder, WORK, "kept")
    assert json.loads(files["kept"])["exact"]["live_bytes"] > 0  # its process has ended


def test_number_is_a_process_and_lines_may_be_short(folder):
    left(folder, WORK + DIE.format(9), "kept")
    with open(folder + "/kept", "r+b") as file:
        file.seek(144)  # the bytes of both lists of modules, behind the head
        file.write(struct.pack("<2I", LIST, LIST))
        for at in (64 << 10, (64 << 10) + LIST):
            file.seek(at)
            file.write(b"0 0 0 \n" * (LIST // 7))
    for form in ("json", "pprof", "heap_v2"):
        done = subprocess.run([OBSERVER, "profile", folder + "/kept", "--format", form, "-o", folder + "/out"], capture_output=True,
                              text=True, check=False)
        assert done.returncode in (0, 1) and "ERROR" not in done.stderr, done
    os.rename(folder + "/kept", folder + "/2147483647")
    done = subprocess.run([OBSERVER, "profile", "2147483647"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "no process 2147483647" in done.stderr, done


def test_process_with_few_samples_leaves_nothing(folder):
    """A shell has few, and ends by _exit."""
    if os.environ.get("HAKMEM_FLAVOUR") == "hardened":
        raise SkipTest("the hardened library keeps it from the start on")
    files, done = left(folder, WORK + DIE.format(9), options=",profile_rate:64m")
    assert done.returncode == -9 and files == {}


def test_file_without_room_is_said_and_ends_nobody(folder):
    files, done = left(folder, WORK, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    assert done.returncode == 0 and "no room for a profile that survives" in done.stderr, done
    assert all(not text.startswith(KEPT) for text in files.values())


def test_what_is_there_is_replaced_only_if_it_is_an_own_file(folder):
    with open(folder + "/kept", "w", encoding="utf-8") as file:
        file.write("old")
    held = open(folder + "/kept", "rb")
    files, _ = left(folder, WORK + DIE.format(9), "kept")
    assert files["kept"].startswith(KEPT) and held.read() == b"old"  # who has it open keeps it whole
    os.unlink(folder + "/kept")
    os.symlink("/dev/null", folder + "/kept")
    _, done = left(folder, WORK + DIE.format(9), "kept")
    assert done.returncode == -9 and os.readlink(folder + "/kept") == "/dev/null"


def test_other_reports_keep_nothing(folder):
    for options in (",report:exit", ",report:stats", ",only:/1t", ",only:/1k"):
        files, _ = left(folder, WORK + DIE.format(9), "kept", options=options)
        assert files == {}, options


def test_damaged_file_is_read_without_harm(folder):
    files, _ = left(folder, WORK + DIE.format(9), "kept")
    whole, chance = bytearray(files["kept"]), random.Random(45)
    for turn in range(60):
        damaged = bytearray(whole[:chance.choice([100, 70000, 700000, len(whole)])] if turn % 3 == 0 else whole)
        for _ in range(chance.choice([1, 30, 3000])):
            at = chance.randrange(16, chance.choice([300, 700000, len(damaged)]))
            if at < len(damaged):
                damaged[at] = chance.choice([0, 255, chance.randrange(256)])
        with open(folder + "/damaged", "wb") as file:
            file.write(damaged)
        for form in ("json", "pprof", "heap_v2"):
            done = subprocess.run([OBSERVER, "profile", folder + "/damaged", "--format", form, "-o", folder + "/out"],
                                  capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1) and (done.returncode == 0 or done.stderr.count("\n") == 1), (turn, form, done)


# --- between the file's creation and its lock --------------------------------------------------

def trace(request, pid, address=0, data=None):
    return ctypes.CDLL(None).ptrace(ctypes.c_long(request), pid, ctypes.c_void_p(address), data)


def traced():
    if trace(0, 0) != 0:  # PTRACE_TRACEME
        raise PermissionError


def run_to_lock(pid):
    """It stands before it takes the lock of its file."""
    flocks, info, number = {"x86_64": 73, "aarch64": 32}, ctypes.create_string_buffer(88), 0
    if os.uname().machine not in flocks:
        raise SkipTest("the number of a system call is not known")
    assert os.WIFSTOPPED(os.waitpid(pid, 0)[1])
    trace(0x4200, pid, 0, ctypes.c_void_p(1))  # PTRACE_SETOPTIONS, PTRACE_O_TRACESYSGOOD
    while True:
        trace(24, pid, 0, ctypes.c_void_p(number))  # PTRACE_SYSCALL
        status = os.waitpid(pid, 0)[1]
        assert os.WIFSTOPPED(status), status
        number = os.WSTOPSIG(status)
        if number == signal.SIGTRAP | 0x80:
            number = 0
            if trace(0x420e, pid, len(info), info) <= 0:  # PTRACE_GET_SYSCALL_INFO
                raise SkipTest("the kernel does not tell system calls")
            what, call, _, kind = struct.unpack_from("=B23x3Q", info)
            if (what, call) == (1, flocks[os.uname().machine]) and kind & fcntl.LOCK_EX:
                return


@contextlib.contextmanager
def program(folder, before=None):
    """One that stays, and is killed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    try:
        process = subprocess.Popen([sys.executable, "-S", "-c", STAY], env=environment(folder, "kept"), preexec_fn=before, **pipes)
    except subprocess.SubprocessError as error:
        raise SkipTest("a debugger is not permitted here") from error
    with process:
        try:
            yield process
        finally:
            process.kill()


def goes_on(process):
    trace(17, process.pid)  # PTRACE_DETACH
    assert process.stdout.readline() == "ready\n"
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
        names = [line.split(maxsplit=5)[5].strip() for line in maps if line.count(" ") > 5]
    return [name for name in names if name.removesuffix(" (deleted)").endswith("/kept")]


def test_file_that_another_process_replaced_before_its_lock_is_not_mapped(folder):
    with program(folder, traced) as first:
        run_to_lock(first.pid)
        with program(folder) as second:
            assert second.stdout.readline() == "ready\n"
            assert goes_on(first) == []
    status, found = profile_of(folder + "/kept")
    assert status == 0 and found["pid"] == second.pid, found


def test_file_that_another_process_empties_before_its_lock_ends_nobody(folder):
    for stays_locked in (True, False):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder + "/kept")
        with program(folder, traced) as process:
            run_to_lock(process.pid)
            with open(folder + "/kept", "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                file.truncate(0)
                fcntl.flock(file, fcntl.LOCK_SH if stays_locked else fcntl.LOCK_UN)
                assert goes_on(process) == ([] if stays_locked else [folder + "/kept"])
    assert profile_of(folder + "/kept")[1]["pid"] == process.pid


sys.exit(run_tests(globals()))
