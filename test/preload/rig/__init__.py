# SPDX-License-Identifier: MIT
"""What the matrix runs on: registry, packages, one pass, two passes compared, the proof."""
