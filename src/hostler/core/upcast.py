"""Brings event bodies of older versions to today's shape, so that an old journal opens forever.

Upcasters are pure and work on the plain body, never on the classes of `events`. A change that only adds a field
with a default needs none. An upcaster that renames an event changes the body's "type".
"""

from collections.abc import Callable, Mapping

from hostler.core.events import VERSION

Body = dict[str, object]
Upcaster = Callable[[Body], Body]

UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(stored name, version) → what makes of that body one of version + 1."""


def upcast(body: Body, version: int, table: Mapping[tuple[str, int], Upcaster] = UPCASTERS, to: int = VERSION) -> Body:
    """The body as version `to` would have written it; `version` is what it was stored with."""
    for step in range(version, to):
        change = table.get((str(body["type"]), step))
        body = change(body) if change else body
    return body
