"""Bits in a check's outcome: read whole, or not at all. What they say comes from a node and may be hostile."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from hostler.core.diagnose.gate.readings import BITS
from hostler.core.state.input_problems import UNREADABLE
from hostler.core.state.model import Facts

NAME_CHARS, WORD_CHARS, WORDS_MOST, TEXT_MOST = 64, 200, 64, 8_192
TOLD_MOST = 64

_Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]
_Word = Annotated[str, Meta(max_length=WORD_CHARS)]


class BitsText(Struct, frozen=True, forbid_unknown_fields=True):
    """A fact's text: the check's version, SHA-256 of the result's bits, and all of the stack that it was given on."""

    version: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    digest: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    stack: Annotated[dict[_Name, _Word], Meta(min_length=1, max_length=WORDS_MOST)]


class ToldBits(Struct, frozen=True):
    """Bits of one check on one part of a node."""

    check: str
    part: str
    version: int
    digest: str
    stack: dict[str, str]


def read_bits(facts: Facts) -> tuple[tuple[ToldBits, ...], str]:
    """The bits among an outcome's facts, and which cannot be read: "" where all can."""
    told: list[ToldBits] = []
    named = sorted(name for name in facts if name.startswith(BITS))
    for name in named[:TOLD_MOST]:
        one = _read(name.removeprefix(BITS), facts[name])
        if one is None:
            return (), f"the bits of {_shown(name.removeprefix(BITS))} are no digest of a stack"
        told.append(one)
    return tuple(told), f"it tells bits of {len(named)} parts" if len(named) > TOLD_MOST else ""


def without_bits(facts: Facts) -> Facts:
    """The facts that a record keeps."""
    return {name: value for name, value in facts.items() if not name.startswith(BITS)}


def _read(name: str, value: object) -> ToldBits | None:
    check, bar, part = name.partition("|")
    if not (check and bar and part and name.isprintable()) or max(len(check), len(part)) > NAME_CHARS:
        return None
    if not isinstance(value, str) or len(value) > TEXT_MOST:
        return None
    try:
        said = msgspec.json.decode(value, type=BitsText)
    except UNREADABLE:
        return None
    if not _are_printable(said.stack.items()):
        return None
    return ToldBits(check, part, said.version, said.digest, said.stack)


def _are_printable(words: Iterable[tuple[str, str]]) -> bool:
    return all(name.isprintable() and value.isprintable() for name, value in words)


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name)[:NAME_CHARS]
