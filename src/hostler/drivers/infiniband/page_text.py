"""Bounds and harmless quotation of what the network's tools print."""

import re

MOST_BYTES = 256 * 2**20
"""98,304 links are 30 MB."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """The first 128 characters, control characters replaced."""
    return _CONTROL.sub("?", text)[:128]
