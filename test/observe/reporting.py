# SPDX-License-Identifier: MIT
"""What the tests of the report at exit and of the heap profile share: the program under test.

Nothing here is waited for only so long: on a busy machine it may take any time, and ctest ends what hangs.
"""
import array
import contextlib
import fcntl
import itertools
import os
import subprocess
import sys
import tempfile
import termios
import time

LIBRARY = os.environ.get("HAKMEM_LIB", "")
# The hardened library holds so much of freed large blocks back without memory (large/huge_quarantine.c):
# of 31 MiB 7 to 14 in 2 700 runs, by chance.
HELD_BACK_MIB = 16 if os.environ.get("HAKMEM_FLAVOUR") == "hardened" else 0


def wait_until(what, condition):
    """A condition that fails (a socket that is bound and does not listen yet, a file that has just gone) is not met."""
    for turn in itertools.count():
        with contextlib.suppress(OSError):
            if condition():
                return
        if turn == 1000:
            print("still waiting for:", what, flush=True)
        time.sleep(0.01)


class Program:
    """Runs under hakmem with these options until the `with` ends; `out` and `error` are there then. After a failure
    it is killed."""

    def __init__(self, options, *words, **more):
        environment = dict(os.environ, LD_PRELOAD=LIBRARY, HAKMEM_OPTIONS=options)
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([sys.argv[1], *words], env=environment, text=True, **{**streams, **more})
        self.pid, self.words = self.process.pid, words
        self.out = self.error = None

    def __enter__(self):
        return self

    def ready(self):
        line = self.process.stdout.readline()
        if not line and self.process.wait() == 77:
            raise SkipTest(f"the program cannot do '{' '.join(self.words)}' here")
        assert line == "ready\n", line

    def finish(self):
        if self.out is None:
            self.out, self.error = self.process.communicate("")

    def __exit__(self, failure, *_):
        try:
            if failure is None:
                self.finish()
        finally:
            if self.out is None:
                self.process.kill()
                self.process.wait()


def finished(options, *words, **more):
    with Program(options, *words, **more) as program:
        program.finish()
    assert program.process.returncode == 0, program.process.returncode
    return program


def pipe_bytes(file):
    count = array.array("i", [0])
    fcntl.ioctl(file, termios.FIONREAD, count)
    return count[0]


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class SkipTest(Exception):
    """Its text is printed."""

    def __init__(self, reason):
        super().__init__(reason)


def run_tests(names):
    """Calls every test_... with a fresh folder; the exit status: 77 if all of them were skipped."""
    if not LIBRARY:
        print("skip: HAKMEM_LIB is not set")
        return 77
    failed = ran = 0
    for name, test in sorted(names.items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory(prefix="hak") as folder:
            os.chmod(folder, 0o755)
            print("begun ", name, flush=True)
            try:
                test(folder)
                ran += 1
                print("ok    ", name)
            except SkipTest as reason:
                print("skip  ", name + ":", reason)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print("FAILED", name, type(error).__name__, error)
                line = error.__traceback__
                while line:
                    print("       ", line.tb_frame.f_code.co_name, line.tb_lineno)
                    line = line.tb_next
    if failed:
        return 1
    return 0 if ran else 77
