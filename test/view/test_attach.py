# SPDX-License-Identifier: MIT
"""Attaching to a process that was started without any option: through the object of its library, with one line if not."""
import os
import signal
import subprocess

import leaky
import pytest
from test_real import LIBRARY

from hakmem_view import attach
from hakmem_view.elf import Elf
from hakmem_view.errors import ViewError

pytestmark = leaky.COMPILER
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture(scope="module", params=[("-pie", "-fPIE"), ("-no-pie", "-fno-pie")], ids=["pie", "no-pie"])
def binary(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attach")
    os.chmod(folder, 0o755)
    subprocess.run(["cc", *request.param, "-O1", "-pthread", "-rdynamic", "-o", folder / "attach", leaky.PROGRAMS / "attach.c"], check=True)
    return folder / "attach"


@pytest.fixture
def process(binary):
    started = []

    def start(mode: str) -> subprocess.Popen:
        one = subprocess.Popen([binary, mode], stdout=subprocess.PIPE, text=True)
        started.append(one)
        assert one.stdout.readline() == "ready\n"
        return one
    yield start
    for one in started:
        one.kill()
        one.communicate()


def refusal(pid: int, **more) -> str:
    with pytest.raises(ViewError) as caught:
        attach.wake(pid, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_commands_arrive_with_their_argument(process):
    one = process("ok")
    attach.wake(one.pid)
    attach.wake(one.pid, 524288)
    assert [one.stdout.readline() for _ in range(2)] == ["1 0\n", "2 524288\n"]
    assert attach.is_possible(one.pid)


def test_stripped_program_has_the_object_still(binary, tmp_path):
    subprocess.run(["strip", "-o", tmp_path / "stripped", binary], check=True)
    assert attach.symbol_value(str(tmp_path / "stripped")) == attach.symbol_value(str(binary)) != 0


@pytest.mark.parametrize("mode, said", [
    ("refuses", "could not open its control channel: Address already in use"),
    ("busy", "could not open its control channel: its option control serves at another name"),
    ("newer",
     "runs on another version of hakmem (it attaches by version 3, this tool by version 2)"),
    ("other", "does not run on hakmem")])
def test_process_that_cannot_or_does_not(process, mode, said):
    one = process(mode)
    assert said in refusal(one.pid) and not attach.is_possible(os.getpid())


def test_process_that_is_silent_is_told_from_one_that_works(process):
    sleeps, works, stands = process("silent"), process("spins"), process("ok")
    os.kill(stands.pid, signal.SIGSTOP)
    said = refusal(sleeps.pid, seconds=0.2)
    assert "has not answered within 0 s: all its threads sleep" in said
    assert "give it some work and ask again" in said
    assert "it runs, but its threads' caches have served" in refusal(works.pid, seconds=0.2)
    assert f"it is stopped, by a signal or a debugger; let it go on (kill -CONT {stands.pid})" in refusal(stands.pid, seconds=0.2)
    os.kill(stands.pid, signal.SIGCONT)
    attach.wake(stands.pid)


@pytest.mark.parametrize("mode", ["filtered", "thread"])
def test_process_with_a_filter_of_system_calls_is_left_alone(process, mode):
    one = process(mode)
    assert f"process {one.pid} (attach) has a seccomp filter, which may kill it" in refusal(one.pid)
    one.kill()
    assert one.stdout.read() == ""  # no request was written


def test_process_with_a_filter_whose_channel_is_open_is_asked(process):
    one = process("open")
    attach.wake(one.pid, 524288)
    assert one.stdout.readline() == "2 524288\n"


@pytest.mark.skipif(not LIBRARY.exists(), reason="no library is built")
def test_sandboxed_service_outlives_the_tool(tmp_path, refuses):
    subprocess.run(["cc", "-O1", "-o", tmp_path / "sandboxed", leaky.PROGRAMS / "sandboxed.c"], check=True)
    with subprocess.Popen([tmp_path / "sandboxed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={"LD_PRELOAD": str(LIBRARY)}) as service:
        assert service.stdout.readline() == "ready\n"
        said = refuses("profile", service.pid, "--seconds", "0")
        assert "has a seccomp filter" in said and "start it with HAKMEM_OPTIONS=control:@hakmem-%p" in said
        rest, _ = service.communicate()
    assert (service.returncode, rest) == (0, "served\n")


@AS_ROOT
def test_no_permission_is_one_line(process, as_nobody):
    one = process("ok")
    said = as_nobody("from hakmem_view import attach", f"attach.wake({one.pid})")
    assert said.startswith(f"no permission to attach to process {one.pid} (attach): it takes the rights of a debugger (user root")


def test_files_that_are_cut_or_wrong_have_nothing(binary, tmp_path):
    data = binary.read_bytes()
    for name, content in {"cut": data[:len(data) // 2], "head": data[:70], "text": b"x" * 5000, "empty": b"",
                          "wild": data[:40] + b"\xff" * 8 + data[48:], "many": data[:60] + b"\xff\xff" + data[62:],
                          "links": data[:62] + b"\xff\xff" + data[64:]}.items():
        (tmp_path / name).write_bytes(content)
        found = Elf.open(str(tmp_path / name))
        if found is not None:
            list(found.symbols()), found.segments, found.build_id, found.debug_link
            assert found.address(5) >= 0
        if name not in ("many", "links"):
            assert attach.symbol_value(str(tmp_path / name)) is None, name
