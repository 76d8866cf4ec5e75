"""The little Markdown that the reference is made of."""

from collections.abc import Iterable, Sequence

from hostler.core.state.durations import duration


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells may hold anything but line breaks, which become spaces."""
    lines = [_row(titles), _row(["---"] * len(titles)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """The text as code, "" for none."""
    return f"`{text}`" if text else ""


def block(kind: str, lines: Iterable[str]) -> str:
    """A fenced block."""
    return "\n".join([f"```{kind}", *lines, "```"]) + "\n"


def time_of(seconds: float | None) -> str:
    """A limit for people, "" for none."""
    return "" if seconds is None else duration(seconds)


def first_sentence(text: str | None) -> str:
    """The first sentence of a docstring."""
    whole = " ".join((text or "").split("\n\n")[0].split())
    return whole if whole.endswith(".") else whole + "." if whole else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
