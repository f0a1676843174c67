# SPDX-License-Identifier: MIT
"""Views of a running process that uses hakmem: statistics, what its resident memory is, a picture of it."""
