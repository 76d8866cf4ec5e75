"""A row of an event: under whose history it is found, and what it does to the fleet."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hostler.core.state.fleet import Fleet
from hostler.core.state.model import LIFTED, OWNER, Node


class FoldError(Exception):
    """A record contradicts the fleet it is folded into: the journal is not ours, or a bug wrote it."""


E = TypeVar("E", bound=Struct)


class EventRow(Struct, Generic[E], frozen=True):
    """One event. `subjects` are the nodes, parts, assets or scopes under whose history it is found.

    `fold` does to the fleet what the event says, at its moment; it reads no table of rules, no clock and no present.
    """

    kind: type[E]
    subjects: Callable[[E], tuple[str, ...]]
    fold: Callable[[Fleet, E, datetime], None]


EventRows = tuple[EventRow[Any], ...]


def of_node(event: Any) -> tuple[str, ...]:
    """The node that the event names."""
    return (event.node,)


def of_nobody(_event: Struct) -> tuple[str, ...]:
    """No node: the event is about the whole cell."""
    return ()


def node_of(fleet: Fleet, node_id: str) -> Node:
    """The node. Raises FoldError where there is none."""
    node = fleet.nodes.get(node_id)
    if node is None:
        raise FoldError(f"no node {node_id}")
    return node


def of_others(cordons: tuple[str, ...]) -> tuple[str, ...]:
    """The cordons that are not ours."""
    return tuple(c for c in cordons if c not in (OWNER, LIFTED))
