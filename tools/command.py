# SPDX-License-Identifier: MIT
"""Entry of `hakmem options`, `check`, `enable`, `disable`, `translate` and `fit`, in the source tree and installed."""
import _signal  # without modules of Python, in which an interrupt could come
import sys

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # until all modules are there: no traceback

if sys.version_info < (3, 9):  # this file is for all versions
    sys.stderr.write("hakmem: its tools need Python 3.9 or newer, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)

try:
    from hakmem_command.main import main
except ModuleNotFoundError as error:
    sys.stderr.write(f"hakmem: Python's standard library is not complete here: {error.name} is missing; install python3\n")
    sys.exit(2)

main()
