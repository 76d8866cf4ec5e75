"""Names of Slurm nodes, one by one or as a hostlist ("gpu[001-003,7],cpu1"), read strictly."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from hostler.ports import RefusedError

MAX_NAMES = 65_536
"""Most names of one hostlist: a job of Slurm's has at most as many nodes."""

MAX_TEXT = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_ENTRY = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]+\])+")
_PIECE = re.compile(r"[A-Za-z0-9._-]+|\[[0-9,-]+\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class HostlistError(ValueError):
    """A name or hostlist that is none."""


@lru_cache(maxsize=MAX_NAMES)
def checked_name(name: str) -> str:
    """The name, if it can only mean one node. Raises RefusedError: `scontrol` would take "ALL" or a list for more."""
    if _NAME.fullmatch(name) is None or name.upper() == "ALL":
        raise RefusedError(
            f"{name[:80]!r} is not the name of one Slurm node; bind the node's NodeName of slurm.conf (--kind slurm)"
        )
    return name


@lru_cache(maxsize=4096)
def expand(text: str) -> tuple[str, ...]:
    """All names in a hostlist, in its order. Raises HostlistError; nothing is guessed and nothing is left out."""
    if len(text) > MAX_TEXT:
        raise HostlistError(f"a hostlist of {len(text)} characters")
    names: list[str] = []
    for entry in _entries(text):
        for name in _names(entry):
            names.append(name)
            if len(names) > MAX_NAMES:
                raise HostlistError(f"a hostlist of more than {MAX_NAMES} names")
    if len(set(names)) != len(names):
        raise HostlistError(f"a hostlist that names a node twice: {text[:80]!r}")
    return tuple(names)


def _entries(text: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    at = 0
    while text and at <= len(text):
        found = _ENTRY.match(text, at)
        if found is None or (found.end() < len(text) and text[found.end()] != ","):
            raise HostlistError(f"no hostlist: {text[:80]!r}")
        yield found.group()
        at = found.end() + 1


def _names(entry: str) -> Iterator[str]:
    pieces = [_numbers(piece) if piece.startswith("[") else (piece,) for piece in _PIECE.findall(entry)]
    count = 1
    for piece in pieces:
        count *= len(piece)
    if count > MAX_NAMES:
        raise HostlistError(f"a hostlist of more than {MAX_NAMES} names")
    for parts in product(*pieces):
        name = "".join(parts)
        if _NAME.fullmatch(name) is None:
            raise HostlistError(f"no name of a node: {name[:80]!r}")
        yield name


def _numbers(brackets: str) -> tuple[str, ...]:
    """Expand brackets, "[001-003,7]" → 001, 002, 003, 7: as wide as the range's first number is written."""
    found: list[str] = []
    for item in brackets[1:-1].split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise HostlistError(f"no range of numbers: {item[:40]!r}")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= MAX_NAMES:
            raise HostlistError(f"no range of numbers: {item[:40]!r}")
        found.extend(str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
        if len(found) > MAX_NAMES:
            raise HostlistError(f"a hostlist of more than {MAX_NAMES} names")
    return tuple(found)
