"""Events of a node's inspection by hands."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.events.row import EventRow, EventRows, node_of, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.onboarding import NOT_BEGUN, OnboardFile, OnboardTick


class OnboardTicked(Struct, frozen=True, tag="onboard_ticked"):
    """A person ticked an item of the checklist; a later tick of the same item takes its place."""

    node: str
    tick: OnboardTick


class OnboardFileAdded(Struct, frozen=True, tag="onboard_file_added"):
    """A photo or file belongs to an item; its bytes are kept under its digest."""

    node: str
    added: OnboardFile


class NodeRejected(Struct, frozen=True, tag="node_rejected"):
    """A person found the node not fit to go on; its inspection begins anew."""

    node: str
    person: str
    reason: str


OnboardEvent = OnboardTicked | OnboardFileAdded | NodeRejected


def _tick(fleet: Fleet, event: OnboardTicked, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = node.inspection or NOT_BEGUN
    others = tuple(tick for tick in known.ticks if tick.item != event.tick.item)
    fleet.put_node(node.id, replace(node, inspection=replace(known, ticks=(*others, event.tick))))


def _add_file(fleet: Fleet, event: OnboardFileAdded, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    known = node.inspection or NOT_BEGUN
    fleet.put_node(node.id, replace(node, inspection=replace(known, files=(*known.files, event.added))))


def _reject(fleet: Fleet, event: NodeRejected, _at: datetime) -> None:
    node = node_of(fleet, event.node)
    fleet.put_node(node.id, replace(node, inspection=None))


ROWS: EventRows = (
    EventRow(OnboardTicked, of_node, _tick),
    EventRow(OnboardFileAdded, of_node, _add_file),
    EventRow(NodeRejected, of_node, _reject),
)
