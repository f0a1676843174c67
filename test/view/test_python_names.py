# SPDX-License-Identifier: MIT
"""Functions of CPython 3.9 to 3.11 get names in stacks, and Python runs on as it did: tools/hakmem_python without the allocator."""
import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
from test_real import LIBRARY

FOLDER = LIBRARY.parent / "hakmem" / "python"
SYSTEM = "/usr/bin/python3"
MAP = "map_ = f'/tmp/perf-{os.getpid()}.map'\n"
pytestmark = pytest.mark.skipif(not (FOLDER / "functions.so").exists(), reason="no build with tools/hakmem_python")


@lru_cache(maxsize=1)
def all_pythons() -> dict[str, str]:
    """Version → interpreter."""
    homes = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin/python")
    names = filter(None, map(shutil.which, ["python3", *(f"python3.{minor}" for minor in range(8, 16))]))
    found = {}
    for one in [SYSTEM, *names, *map(str, homes)]:
        asked = subprocess.run([one, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True,
                               timeout=60, check=False)
        if asked.returncode == 0:
            found.setdefault(asked.stdout.strip(), one)
    return found


def older_pythons() -> dict[str, str]:
    return {version: one for version, one in all_pythons().items() if version in ("3.9", "3.10", "3.11")}


@pytest.fixture(params=["3.9", "3.10", "3.11"])
def python(request) -> str:
    return older_pythons().get(request.param) or pytest.skip(f"no Python {request.param} is installed")


@pytest.fixture
def run(tmp_path):
    """run(python, text) → what it printed; it ended well, without a word on standard error. Maps are removed."""
    def start(python: str, text: str, before=(), **more) -> str:
        (tmp_path / "prog.py").write_text("import atexit, os, sys, threading\nmain = os.getpid()\n" + MAP + text, encoding="utf-8")
        one = subprocess.Popen([*before, python, tmp_path / "prog.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPERFSUPPORT": "1", "PYTHONPATH": str(FOLDER),
                                    "PYTHONDONTWRITEBYTECODE": "1", **more})
        out, error = one.communicate(timeout=120)
        Path(f"/tmp/perf-{one.pid}.map").is_file() and Path(f"/tmp/perf-{one.pid}.map").unlink()
        assert one.returncode == 0 and error == "", (one.returncode, out, error)
        return out
    return start


def test_each_function_has_a_row_once(run, python):
    text = run(python, "def f(): return 1\nclass C:\n    def m(self): return [one for one in 'ab']\n"
                       "for _ in range(3): f(); C().m()\nprint(open(map_).read())")
    rows = [line.split(" ", 2) for line in text.splitlines() if "/prog.py" in line]
    assert len({row[0] for row in rows}) == len(rows) and all(int(row[1], 16) in (16, 32) for row in rows)
    names = [row[2].split(":")[2].split("@")[0].rpartition(".")[2] for row in rows]
    assert sorted(names) == sorted(["<module>", "f", "C", "m", "<listcomp>"]), names


def test_generators_coroutines_and_exceptions_work(run, python):
    assert run(python, '''
import asyncio, gc, traceback
def each():
    try:
        while True:
            yield 1
    except KeyError:
        yield 2
    finally:
        order.append("closed")
order = []
one, fresh, left = each(), each(), each()
assert next(one) == 1 and one.throw(KeyError()) == 2 and next(left) == 1
try:
    fresh.throw(ValueError("x"))
except ValueError as error:
    assert traceback.extract_tb(error.__traceback__)[-1].name == "each"
del left, one
assert order == ["closed", "closed"], order
async def wait():
    await asyncio.sleep(0.01)
    return 5
assert asyncio.run(wait()) == 5
def trace(frame, event, arg):
    seen.add((frame.f_code.co_name, event))
    return trace
def traced(): return 1
seen = set()
sys.settrace(trace); traced(); sys.settrace(None)
assert {("traced", one) for one in ("call", "line", "return")} <= seen, seen
class Bad:
    def __del__(self): each()
for number in range(5000):
    scope = {}
    exec(compile(f"def f(): return {number}", "<made>", "exec"), scope)
    assert scope["f"]() == number
print("ok")''') == "ok\n"


def test_recursion_that_the_stack_does_not_hold_is_an_error(run, python):
    """In 3.11 it takes none otherwise, whatever limit a program sets."""
    assert run(python, '''
def down(n): return n and 1 + down(n - 1)
assert down(900) == 900
sys.setrecursionlimit(10**6)
def deep():
    try:
        down(10**6)
    except RecursionError:
        ended.append(1)
ended = []
deep()
threading.stack_size(256 * 1024)
threads = [threading.Thread(target=deep) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(len(ended))''') == "5\n"


def test_threads_name_functions_at_once(run, python):
    assert run(python, '''
sys.setswitchinterval(1e-6)
def work(number):
    scope = {}
    for at in range(300):
        exec(f"def f{number}_{at}(): return {at}", scope)
        assert scope[f"f{number}_{at}"]() == at
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for one in threads: one.start()
for one in threads: one.join()
rows = open(map_).read().splitlines()
starts = [row.split()[0] for row in rows]
assert len(set(starts)) == len(starts) and all(row.count(" ") >= 2 and ":" in row for row in rows)
print(sum(row.split()[2].startswith(tuple(f"py::f{number}_" for number in range(4))) for row in rows))''') == "1200\n"


@pytest.mark.parametrize("fork", ["os.fork()", "__import__('ctypes').PyDLL(None).fork()"])
def test_forked_child_has_a_map_of_its_own(run, python, fork):
    """Also one that was forked by C code, which tells nobody: from the first new function on."""
    assert run(python, f'''
def before(): pass
def child(): pass
def parent(): pass
before()
pid = {fork}
if pid == 0:
    map_ = f'/tmp/perf-{{os.getpid()}}.map'
    child()
    text = open(map_).read()
    os.unlink(map_)
    os._exit("py::before" not in text or "py::child" not in text)
assert os.waitpid(pid, 0)[1] == 0
parent()
text = open(map_).read()
assert "py::parent" in text and "py::child" not in text
print("ok")''') == "ok\n"


def test_subinterpreter_runs_without_names(run, python):
    assert run(python, '''
import _xxsubinterpreters as inner
one = inner.create()
inner.run_string(one, "def f(): return 1\\nassert f() == 1")
inner.destroy(one)
def after(): pass
after()
print("py::after" in open(map_).read())''') == "True\n"


@pytest.mark.parametrize("refuse", ["mprotect", "mmap", "pwrite", "ftruncate"])
def test_refused_call_costs_the_names_alone(run, python, tmp_path, refuse):
    """A library that is there first refuses memory for code, or a row: no half row stays."""
    (tmp_path / "no.c").write_text('''#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
int mprotect(void *at, size_t bytes, int protection) {
    if (REFUSE == 0 && protection & 4) { errno = 13; return -1; }
    return ((int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "mprotect"))(at, bytes, protection);
}
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (REFUSE == 1 && bytes == 65536) { errno = 12; return (void *)-1; }
    return ((void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(at, bytes, protection, flags, file, offset);
}
static ssize_t full(int file, const void *text, size_t bytes, off_t at) {
    static int count;
    ssize_t (*next)(int, const void *, size_t, off_t) = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    return next(file, text, REFUSE == 2 && count++ >= 3 ? bytes / 2 : bytes, at);
}
ssize_t pwrite(int file, const void *text, size_t bytes, off_t at) { return full(file, text, bytes, at); }
ssize_t pwrite64(int file, const void *text, size_t bytes, off_t at) { return full(file, text, bytes, at); }
int ftruncate(int file, off_t bytes) {
    if (REFUSE == 3) { errno = 28; return -1; }
    return ((int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate"))(file, bytes);
}
''', encoding="utf-8")
    number = ["mprotect", "mmap", "pwrite", "ftruncate"].index(refuse)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DREFUSE={number}", "-o", tmp_path / "no.so", tmp_path / "no.c", "-ldl"], check=True)
    text = run(python, "def f(n): return n and f(n - 1)\nf(50)\n"
                       "print(open(map_).read() if os.path.exists(map_) else '', end='')", LD_PRELOAD=str(tmp_path / "no.so"))
    assert text.count("\n") == (3 if refuse == "pwrite" else 0) and not text.rstrip("\n").count("\n\n"), text


@pytest.mark.parametrize("there,kept", [("echo 7 1 py::old:/x >{}", False), ("ln -s {victim} {}", True), ("mkdir {}", True),
                                        ("mkfifo {}", True)])
def test_what_stands_at_the_place_of_the_map_is_not_misused(run, python, tmp_path, there, kept):
    """A map of an earlier process with that number goes; nothing else is written to."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    words = there.replace("{victim}", str(victim)).replace("{}", "/tmp/perf-$$.map")
    text = run(python, "def f(): pass\nf()\nprint(os.path.isfile(map_) and not os.path.islink(map_) and open(map_).read())\n"
                       "os.rmdir(map_) if os.path.isdir(map_) else os.unlink(map_)",
               before=("/bin/sh", "-c", f'{words} && exec "$0" "$@"'))
    assert victim.read_text(encoding="utf-8") == "mine"
    assert text == "False\n" if kept else "py::f" in text and "py::old" not in text, text


@pytest.mark.parametrize("version", ["2.7", "3.8", "3.9", "3.11", "3.12", "3.13"])
def test_hidden_sitecustomize_runs_in_every_python(version, tmp_path):
    """And nothing else is said or done where functions cannot be named, or nobody asks for it."""
    one = all_pythons().get(version) or pytest.skip(f"no Python {version} is installed")
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nprint('%s %s' % (__name__, {str(FOLDER)!r} in sys.path))\n")
    done = subprocess.run([one, "-c", "import os; print(os.path.exists('/tmp/perf-%d.map' % os.getpid()))"], capture_output=True,
                          text=True, check=True, env={"PYTHONPATH": f"{FOLDER}:{tmp_path}"})
    assert (done.stdout, done.stderr) == ("sitecustomize False\nFalse\n", "")
    assert sorted(file.name for file in FOLDER.iterdir()) == ["functions.so", "sitecustomize.py"], "no compiled copy stays"


def test_failing_sitecustomize_is_told_as_before(python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module\n", encoding="utf-8")
    errors = [subprocess.run([python, "-c", "print(1)"], capture_output=True, text=True, check=True,
                             env={"PYTHONPATH": path}).stderr for path in (f"{FOLDER}:{tmp_path}", str(tmp_path))]
    assert "no_such_module" in errors[1] and errors[0].splitlines()[-1] == errors[1].splitlines()[-1]
