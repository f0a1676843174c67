# SPDX-License-Identifier: MIT
from .cli import main

main()
