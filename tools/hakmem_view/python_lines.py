# SPDX-License-Identifier: MIT
"""Where the functions of a Python file begin: CPython's perf maps have no lines, and maps of ours for older ones have no
qualified names, but the line that the function's code begins with, which may be a decorator's."""
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
def _functions(path: str) -> list[tuple[str, int, int]]:
    """Qualified names, lines of `def`, first lines. Empty if the file cannot be read, or is not for this version of Python."""
    found = [(MODULE, 1, 1)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left: list[tuple[ast.AST, str]] = [(ast.parse(_text(path)), "")]
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    while left:
        node, scope = left.pop()
        name = getattr(node, "name", "") if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else \
            NAMES.get(type(node), "")
        if name:
            found.append((scope + name, node.lineno, min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])))
        left += _inner(node, scope)
    return found


@lru_cache(maxsize=256)
def lines(path: str) -> dict[str, int]:
    """By qualified names; 0: several functions have that name."""
    found: dict[str, int] = {}
    for name, line, _ in _functions(path):
        found[name] = 0 if name in found else line
    return found


@lru_cache(maxsize=65536)
def whole(path: str, name: str, first: int) -> tuple[str, int]:
    """The qualified name and the line of `def`; of several alike, or none, what is known."""
    found = {(one, line) for one, line, begins in _functions(path) if begins == first and one.rpartition(".")[2] == name}
    return found.pop() if len(found) == 1 else (name, first)
