"""Lines of what something waits for: each blocker, and below it each way out, an act as the whole command that runs."""

from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert

from hostler.core.state.ways_out import ByAct, ByTime, WayOut

Object = dict[str, Any]


def blocker_lines(blocker: Object, indent: str) -> Iterator[str]:
    """The blocker, and its ways out as far as this version reads them; of any other the sentence that came with it."""
    yield f"{indent}{blocker['text']}"
    try:
        ways = convert(blocker.get("ways") or [], list[WayOut])
    except ValidationError:
        ways = []
    for way in ways:
        yield f"{indent}  → {_line(way)}"
    if not ways:
        yield f"{indent}  → {blocker['ends_when']}"


def _line(way: WayOut) -> str:
    match way:
        case ByAct():
            return f"{way.text}: {way.command}" if way.command else way.text
        case ByTime():
            return way.text
        case _:
            return f"when {way.text}"
