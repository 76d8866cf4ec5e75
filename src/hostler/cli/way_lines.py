"""Lines of what something waits for: each blocker, and below it each way out, an act as the whole command that runs."""

from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert

from hostler.core.state.ways_out import ByAct, ByTime, WayOut

Object = dict[str, Any]


def blocker_lines(blocker: Object, indent: str, label: str = "") -> Iterator[str]:
    """The blocker behind its label, and its ways out; of ways that this version cannot read, their sentence."""
    yield f"{indent}{label}{blocker['text']}"
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
