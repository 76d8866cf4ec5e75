"""One format for lengths of time in every text for people."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """Format a length of time by its two largest units: "0.2 s", "45 s", "6 min 12 s", "3 h", "2 d 4 h".

    Below 10 s with one decimal; a second unit of zero is left out; a negative length keeps its sign.
    """
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    rest = round(seconds)
    found: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or found:
            found.append(f"{count} {unit}" if count else "")
    return " ".join(text for text in found[:2] if text)
