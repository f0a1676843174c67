# SPDX-License-Identifier: MIT
"""Runs a command in a terminal of its own: prints what it draws, presses Ctrl-C after SECONDS, exits as it does.
usage: terminal.py SECONDS COMMAND..."""
import os
import pty
import select
import signal
import sys
import time


def main() -> int:
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    begin, has_pressed = time.monotonic(), False
    while time.monotonic() - begin < seconds + 20:
        if not has_pressed and time.monotonic() - begin >= seconds:
            os.write(terminal, b"\x03")
            has_pressed = True
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                sys.stdout.buffer.write(os.read(terminal, 65536))
            except OSError:  # the other end is closed
                break
    else:
        os.kill(child, signal.SIGKILL)
    sys.stdout.flush()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if has_pressed else 1


sys.exit(main())
