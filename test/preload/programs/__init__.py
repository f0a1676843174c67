# SPDX-License-Identifier: MIT
"""The programs of the matrix; importing this package fills the registry, in this order."""

from programs import (
    scripts,
    python,
    compilers,
    build,
    archives,
    files,
    tools,
    media,
    databases,
    web,
)

__all__ = [
    "archives",
    "build",
    "compilers",
    "databases",
    "files",
    "media",
    "python",
    "scripts",
    "tools",
    "web",
]
