# SPDX-License-Identifier: MIT
"""`hakmem check`: what it says of processes that it may not read, of those that are not served, and of libraries that take memory by
names of jemalloc or tcmalloc."""
import os
import re
import subprocess
import sys

import leaky
import pytest
from test_observer import core_file
from test_real import LIBRARY, OBSERVED, ROOT

from hakmem_command import check, foreign, main
from hakmem_view.errors import ViewError
from hakmem_view.installed import own_version

pytestmark = leaky.COMPILER
GIVES = "#include <stdlib.h>\nvoid *mallocx(size_t size, int flags) { (void)flags; return malloc(size); }\n" \
        "void *tc_malloc(size_t size) { return malloc(size); }\n"
TAKES = "#include <stddef.h>\nvoid *mallocx(size_t, int);\nvoid *tc_malloc(size_t);\nvoid *take(void) { tc_malloc(1); return mallocx(1, 0); }\n"
PROGRAM = "#include <stdio.h>\nvoid *take(void);\nint main(void) { take(); puts(\"ready\"); fflush(stdout); return getchar() == EOF; }\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Linked with libtakes.so, which takes memory by names that libgives.so has, as bind9's libisc does."""
    folder = tmp_path_factory.mktemp("foreign")
    for name, text in (("gives", GIVES), ("takes", TAKES), ("program", PROGRAM)):
        (folder / f"{name}.c").write_text(text, encoding="ascii")
    words = ["-L.", "-Wl,-rpath,$ORIGIN"]
    for command in (["-shared", "-fPIC", "-o", "libgives.so", "gives.c"],
                    ["-shared", "-fPIC", "-o", "libtakes.so", "takes.c", *words, "-lgives"], ["-o", "program", "program.c", *words, "-ltakes"]):
        subprocess.run(["cc", *command], cwd=folder, check=True)
    return folder / "program"


@pytest.fixture
def started():
    running = []

    def start(words: list, **environment: str) -> subprocess.Popen:
        one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "HAKMEM_OPTIONS": "", **environment})
        running.append(one)
        assert one.stdout.readline() == b"ready\n"
        return one
    yield start
    for one in running:
        one.kill()
        one.communicate()


def said(pid: int, capsys, monkeypatch, width: int = 80) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    main.run(["check", str(pid)])
    return capsys.readouterr().out


def test_names_of_others_are_those_of_the_first_library_that_has_them(program, started):
    one = started([program], LD_PRELOAD="")
    found = {taken.family: taken for taken in foreign.taken(one.pid, check.files(one.pid), "")}
    assert {family: (os.path.basename(taken.file), taken.names, os.path.basename(taken.server), taken.is_ours) for family, taken in found.items()} == {
        "jemalloc": ("libtakes.so", ["mallocx"], "libgives.so", False), "tcmalloc": ("libtakes.so", ["tc_malloc"], "libgives.so", False)}
    assert foreign.words(found["jemalloc"]) == ("libtakes.so uses mallocx of jemalloc, which are those of libgives.so: hakmem serves none of the "
                                                "memory that it takes by them")


@pytest.mark.skipif(not LIBRARY.exists(), reason="no library is built")
def test_library_that_is_linked_with_hakmem_is_ours(program, started, tmp_path):
    """As the libtcmalloc that comes with it."""
    for name in ("libtakes.so", "program"):
        (tmp_path / name).write_bytes((program.parent / name).read_bytes())
        (tmp_path / name).chmod(0o755)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libgives.so", program.parent / "gives.c", "-Wl,--no-as-needed", LIBRARY],
                   check=True)
    one = started([tmp_path / "program"], LD_PRELOAD="", LD_LIBRARY_PATH=str(LIBRARY.parent))
    found = {taken.family: taken for taken in foreign.taken(one.pid, check.files(one.pid), "")}
    assert os.path.basename(found["tcmalloc"].server) == "libgives.so" and found["tcmalloc"].is_ours
    assert "serves none" not in foreign.words(found["tcmalloc"])


@pytest.mark.skipif(not LIBRARY.exists(), reason="no library is built")
def test_bypass_is_a_line(program, started, capsys, monkeypatch):
    """The library has names of jemalloc, but none of tcmalloc."""
    one = started([program], LD_PRELOAD=str(LIBRARY))
    text = said(one.pid, capsys, monkeypatch)
    assert max(map(len, (line for line in text.splitlines() if "/" not in line))) <= 80
    joined = " ".join(text.split())
    assert "names libtakes.so uses mallocx of jemalloc, which are those of libhakmem.so" in joined
    assert "names libtakes.so uses tc_malloc of tcmalloc, which are those of libgives.so: hakmem serves none" in joined


@pytest.mark.skipif(not LIBRARY.exists(), reason="no library is built")
def test_malloc_of_the_program_is_a_line(tmp_path, started, capsys, monkeypatch):
    """As that of one which is linked with jemalloc statically."""
    text = "#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return getchar() == EOF; }\n"
    (tmp_path / "main.c").write_text(text, encoding="ascii")
    own = ["-DBEHIND_TAKES_LIBC=0", "-DBEHIND_LACKS_USABLE=0", "-fno-builtin", ROOT / "test" / "life" / "behind_library.c"]
    for name, more in (("plain", []), ("own", own)):
        subprocess.run(["cc", "-O1", "-o", tmp_path / name, tmp_path / "main.c", *more], check=True)
    one = started([tmp_path / "own"], LD_PRELOAD=str(LIBRARY))
    joined = " ".join(said(one.pid, capsys, monkeypatch).split())
    assert "malloc own has a malloc, which comes before hakmem's: hakmem serves what that passes on" in joined
    one = started([tmp_path / "plain"], LD_PRELOAD=str(LIBRARY))
    assert "has a malloc" not in said(one.pid, capsys, monkeypatch)


@pytest.mark.skipif(not LIBRARY.exists(), reason="no library is built")
def test_process_with_a_filter_of_system_calls(started, tmp_path, capsys, monkeypatch):
    subprocess.run(["cc", "-O1", "-o", tmp_path / "sandboxed", leaky.PROGRAMS / "sandboxed.c"], check=True)
    one = started([tmp_path / "sandboxed"], LD_PRELOAD=str(LIBRARY))
    assert "filter   a seccomp filter: ./hakmem profile leaves it alone" in said(one.pid, capsys, monkeypatch)


@OBSERVED
def test_core_file_says_which_library_served_it(program, started, capsys, tmp_path):
    one = started([program], LD_PRELOAD=str(LIBRARY))
    core_file.write(one.pid, tmp_path / "core")
    assert main.run(["check", str(tmp_path / "core")]) == 0
    text = capsys.readouterr().out
    assert f"process  {one.pid} (program)\n" in text and "library  " in text and f"version  {own_version()}, " in text
    (tmp_path / "core").write_text("no core file", encoding="ascii")
    with pytest.raises(ViewError, match="is no core file"):
        main.run(["check", str(tmp_path / "core")])


def test_process_that_may_not_be_read_says_what_gives_the_right(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr(check, "open", refuse, raising=False)
    monkeypatch.setattr(check.observer.os, "geteuid", lambda: 0)
    with pytest.raises(ViewError, match="cannot be looked into: root lacks CAP_SYS_PTRACE here"):
        check.files(os.getpid())
    with pytest.raises(ViewError, match="there is no process 999999999"):
        check.observer.find("999999999")


@pytest.mark.parametrize("command", main.COMMANDS)
def test_help_says_what_each_word_is_for(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main.run([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for at, line in enumerate(lines):  # a word, and what it is for beside or below it
        if re.match(r"  [-A-Z]", line):
            assert re.match(r"  \S.*\S  +\S", line) or re.match(r" {10,}\S", lines[at + 1]), line


def test_completions_have_every_option_whole(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "gen_manual.py", tmp_path], check=True)
    text = (tmp_path / "hakmem.bash").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("    profile)"))
    words = line.split()
    assert {"--heap-v2", "--per-thread", "--rate", "--keep", "--stop", "--rows", "--peak", "--diff"} <= set(words) and "--heap" not in words
    assert "--slow" in next(line for line in text.splitlines() if line.startswith("    fit)"))
    assert "--control" not in text
