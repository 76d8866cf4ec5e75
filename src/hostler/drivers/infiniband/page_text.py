"""Bounds and harmless quotation of what the network's tools print."""

MOST_BYTES = 256 * 2**20
"""98,304 links are 30 MB."""


def plain(text: str) -> str:
    """The first 128 characters; whatever is not printed as itself (controls, marks of direction) is replaced."""
    cut = text[:128]
    return cut if cut.isprintable() else "".join(one if one.isprintable() else "?" for one in cut)
