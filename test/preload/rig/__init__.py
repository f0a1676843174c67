# SPDX-License-Identifier: MIT
"""What the real-program matrix runs on: registry, packages, one pass, the comparison of two passes, the proof."""
