# SPDX-License-Identifier: MIT
"""Where functions of CPython 3.9 to 3.11 get names, the program keeps its stack, its files and its children: tools/hakmem_python."""
import os

import pytest
from test_python_names import FOLDER, python, pytestmark, run  # noqa: F401  (fixtures and the condition)


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


@pytest.mark.parametrize("ours", ["file", "socket", "gone"])
def test_descriptor_that_a_program_took_over_is_its_own(run, python, tmp_path, ours):
    """As a daemon does, which closes all descriptors. The map goes on while it stands at its place."""
    assert run(python, f'''
import socket
def before(): pass
def behind(): pass
def child(): pass
before()
os.closerange(3, 256)
if {ours!r} == "gone": os.unlink(map_)
if {ours!r} == "socket": taken = socket.socketpair() + socket.socketpair()
else: taken = [open({str(tmp_path / "own")!r} + str(number), "w+b", buffering=0) for number in range(4)]
for one in taken if {ours!r} != "socket" else (): one.write(b"x" * 20000)
behind()
pid = os.fork()
if pid == 0:
    child()
    map_ = f'/tmp/perf-{{os.getpid()}}.map'
    text = open(map_).read()
    os.unlink(map_)
    os._exit(("py::behind" in text) is not ({ours!r} != "gone") or "py::child" not in text)
assert os.waitpid(pid, 0)[1] == 0
if {ours!r} == "socket":
    for one, other in zip(taken[::2], taken[1::2]):
        one.send(b"y"), other.send(b"z")
        assert one.recv(9) == b"z" and other.recv(9) == b"y"
else:
    for one in taken:
        one.seek(0)
        assert one.read() == b"x" * 20000
print("py::behind" in open(map_).read() if os.path.exists(map_) else "gone")''') == ("gone\n" if ours == "gone" else "True\n")


@pytest.mark.parametrize("has_earlier_hook", [False, True])
@pytest.mark.parametrize("words", ["preexec_fn=lambda: None", "preexec_fn=os.setsid", "start_new_session=True"])
def test_child_that_executes_another_program_leaves_no_map(run, python, tmp_path, words, has_earlier_hook):
    """Also where a function is called in each child before that which names functions is asked."""
    (tmp_path / "first").mkdir()
    ours = str(FOLDER / "sitecustomize.py")
    (tmp_path / "first" / "sitecustomize.py").write_text(f"""import os
if not hasattr(os, "was_here"):
    def early(): os.was_here = True
    early()
    os.register_at_fork(after_in_child=lambda: early())
    exec(compile(open({ours!r}).read(), {ours!r}, "exec"), {{"__name__": "sitecustomize", "__file__": {ours!r}}})
""", encoding="utf-8")
    assert run(python, f'''
for _ in range(3):
    done = subprocess.run(["/bin/sh", "-c", "echo $$"], stdout=subprocess.PIPE, {words})
    assert not os.path.exists(f"/tmp/perf-{{int(done.stdout)}}.map")
assert os.fork() or os._exit(not os.path.exists(f"/tmp/perf-{{os.getpid()}}.map") or os.unlink(f"/tmp/perf-{{os.getpid()}}.map") or 0)
assert os.wait()[1] == 0
def later(): pass
later()
print("py::later" in open(map_).read())''', **({"PYTHONPATH": str(tmp_path / "first")} if has_earlier_hook else {})) == "True\n"


@pytest.mark.parametrize("there,kept", [("echo 7 1 py::old:/x >{}", ""), ("ln -s {victim} {}", "False"), ("ln {victim} {}", "mine"),
                                        ("mkdir {}", "False"), ("mkfifo {}", "False")])
def test_what_stands_at_the_place_of_the_map_is_not_misused(run, python, tmp_path, there, kept):
    """A map of an earlier process with that number goes; nothing else is written to."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    words = there.replace("{victim}", str(victim)).replace("{}", "/tmp/perf-$$.map")
    if there.startswith("ln {") and tmp_path.stat().st_dev != os.stat("/tmp").st_dev:
        pytest.skip("/tmp is another file system")
    text = run(python, "def f(): pass\nf()\nprint(os.path.isfile(map_) and not os.path.islink(map_) and open(map_).read())\n",
               before=("/bin/sh", "-c", f'{words} && exec "$0" "$@"'))
    assert victim.read_text(encoding="utf-8") == "mine"
    assert text == f"{kept}\n" if kept else "py::f" in text and "py::old" not in text, text
