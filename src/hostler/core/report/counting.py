"""Numbers of things in sentences: "1 node", "2 nodes"."""

_HISSING = ("s", "x", "ch", "sh")


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is not one: "1 switch", "1,200 switches"."""
    plural = "es" if noun.endswith(_HISSING) else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"
