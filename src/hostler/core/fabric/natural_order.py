"""Names in the order in which people count them."""

import re

_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that puts leaf-2 before leaf-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name))
