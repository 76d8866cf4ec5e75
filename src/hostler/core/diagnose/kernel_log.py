"""Reads kernel-log text: a table of decoders, tried only where their marker occurs.

A new kind of line is a new row. Text may hold several lines; anything may be in it, and nothing raises.
"""

from collections.abc import Callable

from msgspec import Struct

from hostler.core.diagnose import xid
from hostler.core.diagnose.decoded import Decoded

TEXT_LIMIT_CHARS = 65_536
"""Longer text is read up to here; `judge` says so where it happens."""


class Decoder(Struct, frozen=True):
    """`read` is called with the text when `marker` occurs in it, and gives (offset, what it found) pairs."""

    marker: str
    read: Callable[[str], list[tuple[int, Decoded]]]


DECODERS = (Decoder("NVRM:", xid.read),)

_MARKED = tuple((row.marker, row.read) for row in DECODERS)


def decode(text: str) -> tuple[Decoded, ...]:
    """The faults that `text` reports, in the order of its lines; () for ordinary lines.

    Repeated lines give repeated values; folding them is the caller's affair.
    """
    found: list[tuple[int, Decoded]] = []
    for marker, read in _MARKED:
        if marker in text:
            found += read(text[:TEXT_LIMIT_CHARS])
    if not found:
        return ()
    found.sort(key=_offset)
    return tuple(decoded for _, decoded in found)


def _offset(pair: tuple[int, Decoded]) -> int:
    return pair[0]
