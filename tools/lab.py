# SPDX-License-Identifier: MIT
"""Entry of `./hakmem lab`; Python finds the package beside this file."""
import _signal  # without modules of Python, in which an interrupt could come

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # until all modules are there: no traceback

from hakmem_lab.cli import main

main()
