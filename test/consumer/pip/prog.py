# SPDX-License-Identifier: MIT
"""A program that starts itself again on hakmem."""
import sys

import hakmem

hakmem.enable()
print("on hakmem" if hakmem.is_active() else "on another malloc", hakmem.__version__)
sys.exit(0 if hakmem.is_active() else 1)
