# SPDX-License-Identifier: MIT
"""Entry of `hakmem options`, `check`, `enable`, `disable` and `translate`, in the source tree and installed."""
from hakmem_command.main import main

main()
