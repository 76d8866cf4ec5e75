"""Weighs objects in memory, counted one by one: of a whole process most is the interpreter's."""

import gc
import sys
from types import FunctionType, ModuleType


def weight(*roots: object) -> int:
    """Bytes of everything that is reached from these, each object once, code left out."""
    seen: set[int] = set()
    found, todo = 0, list(roots)
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        found += sys.getsizeof(one)
        todo.extend(gc.get_referents(one))
    return found
