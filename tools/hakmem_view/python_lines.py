# SPDX-License-Identifier: MIT
"""Where the functions of a Python file begin, by their qualified names: CPython's perf maps have no lines."""
from __future__ import annotations

import ast
import os
import stat
import warnings
from functools import lru_cache

MOST = 4 << 20  # bytes of a file
MODULE = "<module>"
NAMES = {ast.Lambda: "<lambda>", ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>",
         ast.GeneratorExp: "<genexpr>"}


def _text(path: str) -> bytes:
    """Of a regular file; others may block, or have no end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size >= MOST:
            raise ValueError("no source")
        return os.read(file, MOST)
    finally:
        os.close(file)


def _inner(node: ast.AST, scope: str) -> list[tuple[ast.AST, str]]:
    """What is in a node, with the scope that names begin with: a function's body has one of its own."""
    if isinstance(node, ast.ClassDef):
        own = f"{scope}{node.name}."
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        own = f"{scope}{node.name}.<locals>."
    elif isinstance(node, ast.Lambda):
        return [(node.args, scope), (node.body, f"{scope}<lambda>.<locals>.")]
    else:
        own = f"{scope}{NAMES[type(node)]}.<locals>." if type(node) in NAMES else scope
        return [(one, own) for one in ast.iter_child_nodes(node)]
    body = {id(one) for one in node.body}
    return [(one, own if id(one) in body else scope) for one in ast.iter_child_nodes(node)]


@lru_cache(maxsize=256)
def lines(path: str) -> dict[str, int]:
    """0: several functions have that name. Empty if the file cannot be read, or is not for this version of Python."""
    found = {MODULE: 1}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left: list[tuple[ast.AST, str]] = [(ast.parse(_text(path)), "")]
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    while left:
        node, scope = left.pop()
        name = getattr(node, "name", "") if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else \
            NAMES.get(type(node), "")
        if name:
            found[scope + name] = 0 if scope + name in found else node.lineno
        left += _inner(node, scope)
    return found
