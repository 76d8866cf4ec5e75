"""Bytes of a file that a request is sent: RFC 9110's single range and entity tags. Pure."""

import re
from collections.abc import Mapping

from msgspec import Struct

_RANGE = re.compile(r"bytes=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")


class FileCut(Struct, frozen=True):
    """The answer's status, and the bytes from `start` up to `stop`: 200 (all), 206 (a part), 304 or 416 (none)."""

    status: int
    start: int = 0
    stop: int = 0


def cut_of(headers: Mapping[str, str], size: int, tag: str) -> FileCut:
    """The part of a file of this size that is sent. `tag` is its entity tag, "" for one that has none.

    A range that cannot be read, and more than one, are as if none was asked for, as RFC 9110 14.2 allows.
    """
    if tag and _is_among(tag, headers.get("if-none-match", "")):
        return FileCut(304)
    asked = _RANGE.fullmatch(headers.get("range", ""))
    if asked is None or asked.groups() == ("", "") or headers.get("if-range", tag) != tag:
        return FileCut(200, 0, size)
    first, last = asked.groups()
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < int(first):
            return FileCut(200, 0, size)
    return FileCut(206, start, stop) if start < stop else FileCut(416)


def _is_among(tag: str, listed: str) -> bool:
    return any(one.strip().removeprefix("W/") in ("*", tag) for one in listed.split(",") if one.strip())
