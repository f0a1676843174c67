# SPDX-License-Identifier: MIT
"""Entry of `hakmem options`, `check`, `enable`, `disable` and `translate`, in the source tree and installed."""
import sys

try:
    from hakmem_command.main import main
except ModuleNotFoundError as error:
    sys.stderr.write(f"hakmem: Python's standard library is not complete here: {error.name} is missing; install python3\n")
    sys.exit(2)

main()
