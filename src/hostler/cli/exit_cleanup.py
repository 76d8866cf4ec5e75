"""Closes what is open when the command that runs now ends, however it ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_ENDINGS: ContextVar[ExitStack] = ContextVar("endings")


@contextmanager
def ending() -> Iterator[None]:
    """A command runs inside; what it left open is closed afterwards."""
    with ExitStack() as stack:
        before = _ENDINGS.set(stack)
        try:
            yield
        finally:
            _ENDINGS.reset(before)


def at_end(close: Callable[[], None]) -> None:
    """Call this when the command ends. Outside any command there is no end, and the caller closes."""
    if stack := _ENDINGS.get(None):
        stack.callback(close)
