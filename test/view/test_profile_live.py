# SPDX-License-Identifier: MIT
"""The live table of `profile`: on a terminal of its own, until q, Ctrl-C or the end of the process."""
import os
import signal

import pytest
from test_profile import asked
from test_top import Terminal, no_tool_is_left  # noqa: F401  (a fixture)


@pytest.mark.parametrize("key", [b"q", b"\x03"])
@pytest.mark.parametrize("width", [80, 140])
def test_table_lives_until_a_key_and_stays_on_the_screen(program, key, width):
    one = program()
    tool = Terminal("profile", one.pid, size=(24, width))
    tool.wait_for("q ends it", 2)
    os.write(tool.file, key)
    assert tool.end() == 0 and "Traceback" not in tool.text
    screen, _, after = tool.text.partition("\x1b[?1049l")
    assert "program+0x1100" in screen and "program+0x1100" in after and "Sites by bytes in use" in after
    assert asked(one) == ["524288", "0"]


def test_leaks_grow_while_they_are_watched(program):
    tool = Terminal("profile", "--leaks", program("on").pid)
    tool.wait_for("+", 3)
    os.write(tool.file, b"q")
    assert tool.end() == 0 and "Growth is that of" in tool.text


def test_table_ends_with_the_process(program):
    one = program("on")
    tool = Terminal("profile", one.pid)
    tool.wait_for("program+0x1100")
    one.kill()
    one.wait()
    assert tool.end() == 0 and "program+0x1100" in tool.text.partition("\x1b[?1049l")[2]


def test_table_says_that_nobody_answers(program):
    one = program("on")
    tool = Terminal("profile", one.pid)
    tool.wait_for("program+0x1100")
    one.send_signal(signal.SIGSTOP)
    tool.wait_for("is the process stopped?")
    one.send_signal(signal.SIGCONT)
    os.write(tool.file, b"q")
    assert tool.end() == 0
