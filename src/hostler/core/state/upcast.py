"""Brings event bodies of older versions to today's shape, so that an old journal opens forever; and back again.

Casters are pure and work on the plain body, never on the classes of `events`. A change that only adds a field
with a default needs none. An upcaster that renames an event changes the body's "type". A downcaster writes a body
for controllers of the version before, while a cell is upgraded; without one the event waits for the cell's format.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hostler.core.state import version_1, version_2
from hostler.core.state.events import VERSION

Body = dict[str, Any]
BodyChange = Callable[[Body], Body]
BodyChanges = Mapping[tuple[str, int], BodyChange]

UPCASTERS: dict[tuple[str, int], BodyChange] = {
    ("plan_recorded", 1): version_1.plan_recorded_up,
    ("plan_recorded", 2): version_2.plan_recorded_up,
    ("operation_started", 1): version_2.operation_started_up,
    ("node_registered", 1): version_2.node_registered_up,
    ("intent_recorded", 1): version_1.intent_recorded_up,
    ("approval_requested", 1): version_1.approval_requested_up,
}
"""(stored name, version) → what makes of that body one of version + 1."""

DOWNCASTERS: dict[tuple[str, int], BodyChange] = {
    ("plan_recorded", 3): version_2.plan_recorded_down,
    ("plan_recorded", 2): version_1.plan_recorded_down,
    ("operation_started", 2): version_2.operation_started_down,
    ("node_registered", 2): version_2.node_registered_down,
    ("intent_recorded", 2): version_1.intent_recorded_down,
    ("approval_requested", 2): version_1.approval_requested_down,
}
"""(stored name, version) → what makes of that body one of version - 1."""


def upcast(body: Body, version: int, table: BodyChanges = UPCASTERS, to: int = VERSION) -> Body:
    """The body as version `to` would have written it; `version` is what it was stored with."""
    for step in range(version, to):
        change = table.get((str(body["type"]), step))
        body = change(body) if change else body
    return body


def downcast(body: Body, version: int, to: int, table: BodyChanges = DOWNCASTERS) -> Body:
    """The body as version `to` would have written it. Raises KeyError where a step back has no caster."""
    for step in range(version, to, -1):
        body = table[str(body["type"]), step](body)
    return body


def is_cast(name: str, version: int, table: BodyChanges = UPCASTERS, to: int = VERSION) -> bool:
    """Whether a body of this stored name and version passes any caster on its way to version `to`."""
    return any((name, step) in table for step in range(version, to))
