#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which processes report at exit: by program, and by the memory they took.

Usage: report_select_test.py PROGRAM
"""
import os
import subprocess
import sys

from reporting import LIBRARY, Program, run_tests

NAME = os.path.basename(sys.argv[1])
LONG = "a-program-with-a-long-name"  # the kernel keeps 15 characters of it
FIRST = "hakmem: the program holds "


def said(options, *words, **more):
    with Program(options, *words, **more) as program:
        program.finish()
    assert program.process.returncode == 0
    return program.error


def test_only_the_program_of_that_name_reports_behind_a_wrapper(_folder):
    """A flood: each command of a shell script is a process that would report."""
    script = f"for i in 1 2 3; do /bin/cat /dev/null; done; /usr/bin/env {sys.argv[1]} allocate </dev/null; /bin/ls / >/dev/null"
    counts = []
    for only in ("", f",only:{NAME}", ",only:nothing"):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="report:exit" + only)
        run = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
        counts.append(run.stderr.count(FIRST))
    assert counts[0] >= 5 and counts[1:] == [1, 0], counts


def test_name_is_whole_and_that_of_the_file_that_was_executed(folder):
    os.symlink(sys.argv[1], f"{folder}/{LONG}")
    for name, count in ((LONG, 1), (LONG[:15], 0), (LONG + "r", 0), (NAME, 0), ("", 1)):
        error = said("report:exit,only:" + name, "allocate", executable=f"{folder}/{LONG}")
        assert error.count(FIRST) == count, (name, error)


def test_name_of_the_program_may_be_part_of_the_files(folder):
    os.symlink(sys.argv[1], f"{folder}/{LONG}")
    said(f"report:exit,report_file:{folder}/r-%e.%e-%p", "allocate", executable=f"{folder}/{LONG}")
    names = [name for name in os.listdir(folder) if name.startswith("r-")]
    assert len(names) == 1 and names[0].startswith(f"r-{LONG}.{LONG}-"), names


def test_process_that_never_took_so_much_does_not_report(_folder):
    for only, word, count in (("/1g", "large", 0), ("/20m", "large", 1), (f"{NAME}/20m", "large", 1), ("/20m", "allocate", 0),
                              ("/64k", "allocate", 1), (f"{NAME}/1g", "large", 0), ("other/20m", "large", 0)):
        assert said("report:exit,only:" + only, word).count(FIRST) == count, (only, word)


def test_memory_of_the_program_before_exec_does_not_count(_folder):
    """Nor that of a parent."""
    code = f"import os; x = b'x' * (64 << 20); os.execv({sys.argv[1]!r}, ['p', 'allocate'])"
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS="report:exit,only:/40m")
    run = subprocess.run([sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True,
                         stdin=subprocess.DEVNULL)
    assert run.stderr.count(FIRST) == 0, run.stderr


def test_size_that_is_none_gives_one_line_and_selects_by_name(_folder):
    for size in ("", "x", "-1", "1mm", "99999999999999999999999"):
        lines = said(f"report:exit,only:{NAME}/{size}", "allocate").splitlines()
        assert len(lines) == 6 and lines[0].startswith("hakmem: only: ") and "size" in lines[0], (size, lines)
        assert said(f"report:exit,only:other/{size}", "allocate") == ""


def test_program_of_another_name_is_left_as_without_the_options(folder):
    with Program(f"report:exit,report_file:{folder}/r,only:other", "allocate", close_fds=True) as program:
        program.ready()
        assert os.listdir(folder) == [] and len(os.listdir(f"/proc/{program.pid}/fd")) == 3
        assert len(os.listdir(f"/proc/{program.pid}/task")) == 1
    assert program.error == "" and os.listdir(folder) == []


def test_file_without_a_report_is_told_to_the_program_meant(folder):
    for only, count in ((NAME, 1), ("other", 0)):
        assert len(said(f"report_file:{folder}/r,only:{only}").splitlines()) == count, only


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
