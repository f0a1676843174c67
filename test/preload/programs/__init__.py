# SPDX-License-Identifier: MIT
"""The programs of the matrix; importing this package fills the registry, in this order."""

from programs import (scripts, python, compilers, build, archives, files,  # noqa: F401
                      tools, media, databases, web)  # noqa: F401
