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
