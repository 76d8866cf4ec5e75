"""Numbers of things in sentences: "1 node", "2 nodes", "n1, n2 and 7 more"."""

from collections.abc import Sequence

_HISSING = ("s", "x", "ch", "sh")


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is not one: "1 switch", "1,200 switches"."""
    plural = "es" if noun.endswith(_HISSING) else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def first_names(names: Sequence[str], most: int) -> str:
    """The first `most` names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
