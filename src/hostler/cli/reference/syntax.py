"""Syntax of the house's own code for the pages that are read from it: each text is parsed once a process."""

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@cache
def syntax(text: str) -> ast.Module:
    """The module that a source text is. Raises SyntaxError."""
    return ast.parse(text)


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yields every statement below; what stands within expressions, most of a tree, is not walked."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, field, None)
            if not isinstance(inside, list):
                continue  # of a lambda or a conditional expression it is no list
            for below in inside:
                if isinstance(below, ast.stmt):
                    yield below
                ahead.append(below)


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the garbage collector, which takes four fifths of the time of parsing: trees only grow."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
