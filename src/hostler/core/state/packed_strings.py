"""Holds many small strings in few objects: the slots and serials of a fleet's parts are most of its memory.

58 pairs as a tuple of tuples take some 9 kB for a node; packed they take one text of serials, and names that all nodes
of a kind share.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

SEPARATOR = "\n"
WORDS_KEPT = 1_000
"""Different values that are held once: a fleet has some tens of layouts. What tells nodes apart is not shared."""

W = TypeVar("W")


class Pairs(Struct, frozen=True, array_like=True):
    """(name, serial) pairs in the order in which they were given. `serials` are joined by line ends."""

    names: tuple[str, ...] = ()
    serials: str = ""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.names, self.serials.split(SEPARATOR), strict=bool(self.names))

    def __len__(self) -> int:
        return len(self.names)


NO_PAIRS = Pairs()


def pairs(given: Iterable[tuple[str, str]]) -> Pairs:
    """The pairs, packed. A serial of several lines cannot be one: its line ends become spaces."""
    listed = tuple(given)
    if not listed:
        return NO_PAIRS
    return Pairs(tuple(name for name, _ in listed), join(serial for _, serial in listed))


def join(texts: Iterable[str]) -> str:
    """The texts as one, each on its line."""
    return SEPARATOR.join(map(one_line, texts))


def one_line(text: str) -> str:
    """The text without line ends, as it can be joined with others."""
    return text.replace(SEPARATOR, " ")


class Shared(Generic[W]):
    """Equal values as one object. Beyond WORDS_KEPT it begins anew: what was shared stays shared."""

    def __init__(self) -> None:
        self._known: dict[W, W] = {}

    def one(self, value: W) -> W:
        """The object that stands for all that equal this value."""
        if len(self._known) >= WORDS_KEPT:
            self._known.clear()
        return self._known.setdefault(value, value)
