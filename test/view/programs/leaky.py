# SPDX-License-Identifier: MIT
"""A list of bytes objects with a reference too many, as a mistake in an extension leaves it: it outlives the interpreter."""
import ctypes
import sys

kept = [bytes(1000) for _ in range(int(sys.argv[1]) * 1000)]
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
