# SPDX-License-Identifier: MIT
"""Entry of `./hakmem stats`, `top`, `explain` and `map`; Python finds the package beside this file."""
from hakmem_view.cli import main

main()
