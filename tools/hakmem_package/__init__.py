# SPDX-License-Identifier: MIT
"""Packages of hakmem, and the check of a release, by Python's standard library and the tools of each kind of package."""
