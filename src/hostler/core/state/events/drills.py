"""Events of drills: one begins on a node, what it injected is seen, its place is filled, it ends."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.drills import Drill
from hostler.core.state.events.row import EventRow, EventRows, FoldError, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node


class DrillBegan(Struct, frozen=True, tag="drill_began"):
    """The node is to show a fault, for this person's reason, until then at most."""

    node: str
    drill: Drill


class DrillSighted(Struct, frozen=True, tag="drill_sighted"):
    """The fault that the drill injected has raised this condition; its token no longer counts."""

    node: str
    drill: str
    condition: str


class DrillPlaceFilled(Struct, frozen=True, tag="drill_place_filled"):
    """`by` serves in the place that the drill's node has left in its pool."""

    node: str
    drill: str
    by: str


class DrillEnded(Struct, frozen=True, tag="drill_ended"):
    """The drill is over. `result`: returned, seen, unseen, ended (by a person), timed_out or failed."""

    node: str
    drill: str
    result: str
    person: str
    reason: str


def _began(fleet: Fleet, event: DrillBegan, _at: datetime) -> None:
    fleet.put_node(event.node, replace(node_of(fleet, event.node), drill=event.drill))


def _of(fleet: Fleet, node_id: str, drill_id: str) -> tuple[Node, Drill]:
    node = node_of(fleet, node_id)
    if node.drill is None or node.drill.id != drill_id:
        raise FoldError(f"{node_id} has no drill {drill_id}")
    return node, node.drill


def _sighted(fleet: Fleet, event: DrillSighted, at: datetime) -> None:
    node, drill = _of(fleet, event.node, event.drill)
    fleet.put_node(node.id, replace(node, drill=replace(drill, sighted=event.condition, sighted_at=at)))


def _filled(fleet: Fleet, event: DrillPlaceFilled, _at: datetime) -> None:
    node, drill = _of(fleet, event.node, event.drill)
    fleet.put_node(node.id, replace(node, drill=replace(drill, place=event.by)))


def _ended(fleet: Fleet, event: DrillEnded, at: datetime) -> None:
    node, drill = _of(fleet, event.node, event.drill)
    over = replace(drill, ended=at, result=event.result, ended_by=event.person, detail=event.reason)
    fleet.put_node(node.id, replace(node, drill=over))


ROWS: EventRows = (
    EventRow(DrillBegan, of_node, _began),
    EventRow(DrillSighted, of_node, _sighted),
    EventRow(DrillPlaceFilled, lambda e: (e.node, e.by), _filled),
    EventRow(DrillEnded, of_node, _ended),
)
