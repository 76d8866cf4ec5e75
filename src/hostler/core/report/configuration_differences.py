"""Differences of two configurations, a line for each value."""

from collections.abc import Iterator, Mapping
from typing import Any

LINES_MOST = 200
_SECTIONS = ("policy", "skus", "pools", "routes")


def differences(active: Mapping[str, Any], fresh: Mapping[str, Any]) -> list[str]:
    """One line for each value that differs, by its place; the first LINES_MOST of them.

    Both configurations are built of plain values, as the API shows them.
    """
    before, after = (dict(_flat({name: one.get(name) for name in _SECTIONS})) for one in (active, fresh))
    lines = [
        f"{place}: {before.get(place, 'none')} → {after.get(place, 'none')}"
        for place in sorted(before.keys() | after.keys())
        if before.get(place) != after.get(place)
    ]
    more = [f"… and {len(lines) - LINES_MOST} more"] if len(lines) > LINES_MOST else []
    return [*lines[:LINES_MOST], *more] or ["nothing in policy, SKUs, pools and routes; comments, boot or admission"]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Each single value with its place; a list is one value."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{place}.{name}" if place else str(name))
    elif value not in (None, "", [], {}):
        yield place, str(value)
