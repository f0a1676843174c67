# SPDX-License-Identifier: MIT
"""Entry of `./hakmem lab`; Python finds the package beside this file."""
from hakmem_lab.cli import main

main()
