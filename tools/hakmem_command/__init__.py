# SPDX-License-Identifier: MIT
"""`hakmem options`, `check`, `enable`, `disable` and `translate`: by Python's standard library alone."""
