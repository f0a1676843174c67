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


def remove(at: Path) -> None:
    """What is there instead of a map, too."""
    if at.is_dir() and not at.is_symlink():
        at.rmdir()
    else:
        at.unlink(missing_ok=True)


@pytest.fixture
def run(tmp_path):
    """run(python, text) → what it printed; it ended well, without a word on standard error. Maps are removed."""
    def start(python: str, text: str, before=(), **more) -> str:
        (tmp_path / "prog.py").write_text("import atexit, os, subprocess, sys, threading\nmain = os.getpid()\n" + MAP + text, encoding="utf-8")
        one = subprocess.Popen([*before, python, tmp_path / "prog.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPERFSUPPORT": "1", "PYTHONPATH": str(FOLDER),
                                    "PYTHONDONTWRITEBYTECODE": "1", **more})
        try:
            out, error = one.communicate(timeout=120)
        finally:
            one.kill()
            one.wait()
            remove(Path(f"/tmp/perf-{one.pid}.map"))
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


@pytest.mark.parametrize("odd", range(4))
def test_function_that_runs_while_another_is_named_is_named_too(run, python, odd):
    """By the garbage collector, which may run whenever Python allocates; the stubs of a page end at each place."""
    assert run(python, f'''
import gc
for number in range({odd}): exec(compile("1", "<odd>", "exec"))
def callback(phase, info):
    if phase == "start":
        count.append(1)
        exec(compile(str(len(count)), "<inner>", "exec"))
count = []
gc.callbacks.append(callback)
gc.set_threshold(1, 1000, 1000)
for number in range(15000): exec(compile(str(number), "<outer>", "exec"))
gc.callbacks.clear()
starts = [row.split()[0] for row in open(map_)]
assert len(count) > 100 and len(set(starts)) == len(starts) > 15000, (len(count), len(starts))
print("ok")''') == "ok\n"


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


@pytest.mark.parametrize("version", ["2.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_hidden_sitecustomize_runs_in_every_python(version, tmp_path):
    """And nothing else is said or done where functions cannot be named, or nobody asks for it."""
    one = all_pythons().get(version) or pytest.skip(f"no Python {version} is installed")
    folder = tmp_path / "names"  # of our own: what other tests start has a compiled copy for a moment
    shutil.copytree(FOLDER, folder, ignore=lambda *_: ["__pycache__"])
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nprint('%s %s' % (__name__, {str(folder)!r} in sys.path))\n")
    done = subprocess.run([one, "-c", "import os; print(os.path.exists('/tmp/perf-%d.map' % os.getpid()))"], capture_output=True,
                          text=True, check=True, env={"PYTHONPATH": f"{folder}:{tmp_path}"})
    assert (done.stdout, done.stderr) == ("sitecustomize False\nFalse\n", "")
    assert sorted(file.name for file in folder.iterdir()) == ["functions.so", "sitecustomize.py"], "no compiled copy stays"


def test_hidden_sitecustomize_runs_where_the_working_directory_is_gone(python, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('theirs')\n", encoding="utf-8")
    alone, ours = [subprocess.run(["/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -c "print(1)"', python],
                                  capture_output=True, text=True, check=False, cwd=tmp_path, env={"PYTHONPATH": path})
                   for path in (f"relative:{tmp_path}", f"{FOLDER}:relative:{tmp_path}")]
    if alone.returncode:
        pytest.skip("this Python does not start there")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, "theirs\n1\n", "")
