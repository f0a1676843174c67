# SPDX-License-Identifier: MIT
"""A list of bytes objects that only grows."""
import sys

kept = [bytes(1000) for _ in range(int(sys.argv[1]) * 1000)]
