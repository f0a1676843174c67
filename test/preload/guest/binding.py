# SPDX-License-Identifier: MIT
"""Prints for each name of the malloc family whether it resolves into the object of that name."""

import ctypes
import sys

NAMES = ("malloc calloc realloc free aligned_alloc posix_memalign memalign valloc pvalloc "
         "malloc_usable_size")


class DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]


libc = ctypes.CDLL(None)
for name in NAMES.split():
    info = DlInfo()
    libc.dladdr(ctypes.cast(getattr(libc, name), ctypes.c_void_p), ctypes.byref(info))
    print(name, sys.argv[1] in info.file.decode())
