#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The report at exit: once for each process that ends by itself, where the options say, after all else.

Usage: report_test.py PROGRAM [STATIC_PROGRAM STATIC_PROGRAM_WITHOUT_OBSERVER]
"""
import fcntl
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys

from reporting import HELD_BACK_MIB, LIBRARY, Program, content, finished, pipe_bytes, run_tests, wait_until

FIRST = "hakmem: the program holds "
HEAD = re.compile(r"hakmem: \d+\.\d+\.\d+, process (\d+) \(observe_exit\)\n" + FIRST)


def test_report_is_written_once_to_standard_error(_folder):
    program = finished("report:exit", "allocate")
    assert program.out == "ready\n"
    assert program.error.count(FIRST) == 1 and int(HEAD.match(program.error)[1]) == program.pid, program.error
    assert finished("report:off", "allocate").error == ""


def test_report_comes_last_also_when_main_left(_folder):
    program = finished("report:exit", "leave_main", stderr=subprocess.STDOUT)
    assert program.out.count(FIRST) == 1, program.out
    assert "flushed\n" in program.out


def test_summary_has_five_lines_that_the_figures_agree_with(folder):
    lines = finished("report:exit,retain_min:32m", "large").error.splitlines()
    assert len(lines) == 5 and all(len(line) <= 140 for line in lines[:4]), lines
    assert "tables" in lines[3] and lines[4].endswith("; more: report:stats, report:explain"), lines
    # The cause and the hint of report:explain.
    assert lines[4].startswith("hakmem: the largest part, ") and "is unused memory that is kept for the next" in lines[4], lines
    assert "retain_min, retain_percent and huge_cache bound it" in lines[4], lines
    kept = re.search(r"in slabs, ([0-9.]+) MiB kept for reuse", lines[2])
    assert float(kept[1]) > 25 - HELD_BACK_MIB, lines  # 64 blocks of 500 000 bytes
    peak = re.match(r"hakmem: RSS is ([0-9.]+) MiB, ([0-9.]+) MiB at its peak", lines[3])
    assert 30 - HELD_BACK_MIB < float(peak[1]) <= float(peak[2]) < 100, lines
    finished(f"report:stats,report_file:{folder}/r", "large")
    assert re.search(r"\nhakmem: large_bytes +\d+ ", content(folder + "/r"))


def test_each_choice_has_its_report(folder):
    assert "\nhakmem: mapped_bytes " in finished("report:stats", "allocate").error
    for choice in ("json", "explain", "map"):
        assert FIRST not in finished(f"report:{choice},report_file:{folder}/{choice}").error
        assert content(f"{folder}/{choice}") != ""


def test_file_is_new_and_the_owners_alone(folder):
    path = folder + "/r"
    old = os.umask(0)
    finished("report:exit,report_file:" + path)
    os.umask(old)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, "a", encoding="utf-8") as file:
        file.write("x" * 100000)
    program = finished("report:exit,report_file:" + path)
    assert HEAD.match(content(path)) and "xxx" not in content(path)
    assert os.path.getsize(path) < 100000 and program.error == ""


def test_file_of_another_mode_gets_the_owners_alone(folder):
    path = folder + "/r"
    with open(path, "w", encoding="utf-8") as file:
        file.write("x" * 100000)
    os.chmod(path, 0o666)
    finished("report:exit,report_file:" + path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and HEAD.match(content(path))


def test_file_with_another_name_or_owner_stays(folder):
    path = folder + "/r"
    with open(path, "w", encoding="utf-8") as file:
        file.write("mine")
    os.link(path, folder + "/other")
    lines = finished("report:exit,report_file:" + path).error.splitlines()
    assert len(lines) == 1 and "of this user" in lines[0] and content(path) == "mine", lines
    os.unlink(folder + "/other")
    if os.getuid() == 0:
        os.chown(path, 1, 1)
        lines = finished("report:exit,report_file:" + path).error.splitlines()
        assert len(lines) == 1 and "of this user" in lines[0] and content(path) == "mine", lines


def test_pipe_that_is_read_slowly_gets_all(_folder):
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with Program("report:json", "allocate", stderr=writing) as program:
        os.close(writing)
        program.ready()
        program.process.stdin.close()
        with open(reading, encoding="utf-8") as file:
            wait_until("a full pipe", lambda: pipe_bytes(file) == 4096)
            report = file.read()
        program.process.wait()
        program.out = ""
    assert len(report) > 4096 and json.loads(report), len(report)  # more than the pipe holds


def test_pipe_that_is_not_read_ends_the_wait(_folder):
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    program = finished("report:json", "allocate", stderr=writing)
    os.close(writing)
    os.close(reading)
    assert program.process.returncode == 0


def test_report_without_room_is_cut_off_with_a_line(folder):
    path = folder + "/r"
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
    cut = finished("report:json,report_file:" + path, **small).error
    assert os.path.getsize(path) == 100
    assert cut == f"hakmem: report_file: {path}: its end is missing: no room, or no reader\n", cut
    assert len(finished("report:exit,report_file:/dev/full").error.splitlines()) == 1


def test_link_is_not_followed(folder):
    with open(folder + "/mine", "w", encoding="utf-8") as file:
        file.write("mine")
    os.symlink(folder + "/mine", folder + "/r")
    program = finished(f"report:exit,report_file:{folder}/r")
    assert content(folder + "/mine") == "mine"
    lines = program.error.splitlines()
    assert len(lines) == 1 and lines[0].startswith("hakmem: report_file: "), lines


def test_file_that_cannot_be_made_gives_one_line(folder):
    for path in (folder + "/none/r", folder, folder + "/none/" + "x" * 100):
        lines = finished("report:exit,report_file:" + path).error.splitlines()
        assert len(lines) == 1 and lines[0].startswith("hakmem: report_file: "), lines


def test_device_and_pipe_are_written_to_as_they_are(folder):
    mode = os.stat("/dev/null").st_mode
    assert finished("report:exit,report_file:/dev/null").error == ""
    assert os.stat("/dev/null").st_mode == mode
    os.mkfifo(folder + "/pipe")
    reading = os.open(folder + "/pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert finished(f"report:exit,report_file:{folder}/pipe").error == ""
    with open(reading, encoding="utf-8") as file:
        assert HEAD.match(file.read())


def test_named_pipe_that_is_not_read_ends_the_wait(folder):
    os.mkfifo(folder + "/pipe")
    reading = os.open(folder + "/pipe", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
    program = finished(f"report:json,report_file:{folder}/pipe", "allocate")
    os.close(reading)
    assert program.process.returncode == 0 and len(program.error.splitlines()) == 1, program.error


def test_pipe_that_nobody_reads_ends_nobody(folder):
    os.mkfifo(folder + "/pipe")
    assert len(finished(f"report:exit,report_file:{folder}/pipe").error.splitlines()) == 1
    reading, writing = os.pipe()
    os.close(reading)
    program = finished("report:exit", stderr=writing)  # standard error: no SIGPIPE ends the program
    os.close(writing)
    assert program.process.returncode == 0


def test_child_of_a_fork_reports_too(folder):
    program = finished(f"report:exit,report_file:{folder}/%p", "fork")
    names = os.listdir(folder)
    assert len(names) == 2 and str(program.pid) in names
    assert all(HEAD.match(content(f"{folder}/{name}"))[1] == name for name in names)


def test_process_that_does_not_end_by_itself_reports_nothing(_folder):
    for word, status in (("_exit", 0), ("abort", -6)):
        with Program("report:exit", word) as program:
            program.finish()
        assert program.process.returncode == status and FIRST not in program.error


def test_exit_in_a_signal_handler_reports(_folder):
    with Program("report:exit", "signal") as program:
        program.ready()
        program.process.terminate()
        program.finish()
    assert program.process.returncode == 0 and program.error.count(FIRST) == 1


def test_force_libc_reports_little_and_says_so(_folder):
    if os.environ.get("HAKMEM_FLAVOUR") == "musl":
        return  # its malloc has no second name
    for choice in ("exit", "explain"):
        error = finished(f"report:{choice},force_libc:1", "allocate").error
        assert error.count("\nhakmem: force_libc is on: ") == 1, error
        assert "force_libc" not in finished(f"report:{choice}", "allocate").error


def test_program_that_closes_standard_error_is_reported(_folder):
    for word in ("close_error", "close_at_exit"):
        program = finished("report:exit", word)
        assert HEAD.match(program.error) and FIRST not in program.out, word


def test_descriptor_that_was_reused_is_not_written_to(_folder):
    program = finished("report:exit", "reuse_at_exit")
    assert program.out == program.error == ""


def test_file_of_the_program_with_the_number_of_standard_error_stays(folder):
    program = finished("report:exit", "write_data", folder)
    assert content(folder + "/data") == "DATA" and HEAD.match(program.error), program.error


def test_process_that_lost_its_rights_reports(_folder):
    """It may not open its own files in /proc any more, unless the test's user is who it becomes."""
    with Program("report:explain", "user") as program:
        program.ready()
        program.finish()
    causes = re.findall(r"^hakmem: \w+: [\d.]+ [KM]?i?B, ", program.error, re.M)
    assert program.process.returncode == 0 and len(causes) > 8 and "does not tell" not in program.error, program.error


def test_process_without_proc_gives_one_line(folder):
    with Program("report:exit", "chroot", folder) as program:
        program.ready()
        program.finish()
    assert program.process.returncode == 0
    assert re.fullmatch(r"hakmem: report: none: there is no process \d+\n", program.error), program.error


def test_process_without_memory_gives_one_line(_folder):
    program = finished("report:exit", "no_memory")
    assert program.error == "hakmem: report: none: no memory\n", program.error


def test_library_that_is_missing_gives_one_line(folder):
    shutil.copy(os.path.realpath(LIBRARY), folder + "/libhakmem.so")
    environment = dict(os.environ, LD_PRELOAD=folder + "/libhakmem.so", HAKMEM_OPTIONS="report:exit")
    run = subprocess.run([sys.argv[1], "allocate"], env=environment, capture_output=True, text=True, check=True,
                         stdin=subprocess.DEVNULL)
    assert re.fullmatch(r"hakmem: report: none, as it needs libhakmem-observe\.so\.\d+: it is not linked in, and cannot be loaded\n", run.stderr), run.stderr


def test_program_that_does_not_report_loads_nothing(_folder):
    for options, is_there in (("", False), ("report:off", False), ("report:exit,only:other", False), ("report:exit", True)):
        with Program(options) as program:
            program.ready()
            with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
                assert ("libhakmem-observe" in maps.read()) == is_there, options


def test_environment_is_that_of_the_program(_folder):
    """The library is loaded before the C library is initialised."""
    environment = {"LD_PRELOAD": LIBRARY, "HAKMEM_OPTIONS": "report:exit,report_file:/dev/null", "ONE": "1"}
    run = subprocess.run(["/usr/bin/env"], env=environment, capture_output=True, text=True, check=True)
    assert dict(line.split("=", 1) for line in run.stdout.splitlines()) == environment, run.stdout


def test_static_program_reports_with_the_archive_of_the_observer(_folder):
    environment = dict(os.environ, HAKMEM_OPTIONS="report:exit")
    for program, first in zip(sys.argv[2:], (r"hakmem: \d+\.\d+\.\d+, process \d+ ", r"hakmem: report: none, .*: it is not linked in, and cannot be loaded\n")):
        run = subprocess.run([program, "allocate"], env=environment, capture_output=True, text=True, check=True,
                             stdin=subprocess.DEVNULL)
        assert re.match(first, run.stderr), (program, run.stderr)


def test_copy_of_standard_error_is_kept_only_for_a_report(folder):
    for options, count in (("report:exit", 4), ("report:off", 3), (f"report:exit,report_file:{folder}/r", 3)):
        with Program(options, close_fds=True) as program:
            program.ready()
            assert len(os.listdir(f"/proc/{program.pid}/fd")) == count, options


def test_file_without_a_report_gives_one_line(folder):
    lines = finished(f"report_file:{folder}/r", "allocate").error.splitlines()
    assert len(lines) == 1 and "without the option report" in lines[0], lines
    assert os.listdir(folder) == []


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
