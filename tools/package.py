# SPDX-License-Identifier: MIT
"""Entry of `./hakmem package` and `./hakmem release`."""
from hakmem_package.main import main

main()
