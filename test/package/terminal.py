# SPDX-License-Identifier: MIT
"""Runs a command in a terminal of its own: prints what it draws, presses Ctrl-C once it has drawn
TEXT, exits as it does.
usage: terminal.py TEXT COMMAND..."""
import os
import pty
import sys


def main() -> int:
    text, command, drawn = sys.argv[1].encode(), sys.argv[2:], b""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    has_pressed = False
    while True:
        if not has_pressed and text in drawn:
            os.write(terminal, b"\x03")
            has_pressed = True
        try:
            drawn += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
    sys.stdout.buffer.write(drawn)
    sys.stdout.flush()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if has_pressed else 1


sys.exit(main())
