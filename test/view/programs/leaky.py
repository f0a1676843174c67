# SPDX-License-Identifier: MIT
"""A list that is never emptied, and sessions of which one in 64 stays; each with a reference too many, as a mistake in an
extension leaves it: they outlive the interpreter."""
import ctypes
import sys


def remember(log):  # the line of the leak
    log.append(bytes(1000))


class Shop:
    @staticmethod
    def open_session():  # the line of the pinned blocks
        return bytes(420)


def main():
    log, count = [], int(sys.argv[1]) * 1000
    for _ in range(count):
        remember(log)
    sessions = [Shop.open_session() for _ in range(count)]
    for number in range(count):
        if number % 64 != 0:
            sessions[number] = None
    for one in (log, sessions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


main()
