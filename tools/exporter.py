# SPDX-License-Identifier: MIT
"""Entry of `hakmem exporter`, in the source tree and installed."""
import _signal  # without modules of Python, in which an interrupt could come
import sys

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # until all modules are there: no traceback

if sys.version_info < (3, 9):  # this file is for all versions
    sys.stderr.write("hakmem: its tools need Python 3.9 or newer, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)

try:
    from hakmem_exporter.main import main
except ModuleNotFoundError as error:
    hint = {"prometheus_client": "; Debian has it as python3-prometheus-client"}.get(error.name or "", "")
    sys.stderr.write(f"hakmem: exporter needs the Python package {error.name}{hint}\n")
    sys.exit(2)

main()
