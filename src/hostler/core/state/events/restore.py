"""Events of a restored journal: all stands still, nodes are compared with reality, a person lets it act again."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.deadlines import extend
from hostler.core.state.events.rollouts import postpone
from hostler.core.state.events.row import EventRow, EventRows, of_nobody, of_node
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Difference

DIFFERENCES_KEPT = 32


class JournalRestored(Struct, frozen=True, tag="journal_restored"):
    """Records up to `through` are a copy's, the last of `until`: nothing is disturbed until a person says so."""

    epoch: int
    through: int
    until: datetime


class NodeCompared(Struct, frozen=True, tag="node_compared"):
    """After a restore these differences from the copy are new; `heard`: the node itself has shown what it is."""

    node: str
    differences: tuple[Difference, ...]
    heard: bool = False


class RestoreReleased(Struct, frozen=True, tag="restore_released"):
    """A person lets the restored cell act again. `unheard` nodes had shown no sign of themselves by then."""

    person: str
    reason: str
    unheard: int = 0


def _begin(fleet: Fleet, event: JournalRestored, at: datetime) -> None:
    """From here on nothing is disturbed; what an earlier restore found is forgotten."""
    fleet.singles.put("cell", replace(fleet.cell, restored=at, copied=event.through))
    _forget(fleet)


def _compare(fleet: Fleet, event: NodeCompared, at: datetime) -> None:
    """Add what is known of the node by now; of each kind and subject the first difference counts."""
    node = fleet.nodes[event.node]
    known = {(d.what, d.journal) for d in node.differences}
    fresh = tuple(d for d in event.differences if (d.what, d.journal) not in known)
    differences = (*node.differences, *fresh)[:DIFFERENCES_KEPT]
    compared = node.compared or (at if event.heard else None)
    fleet.put_node(node.id, replace(node, compared=compared, differences=differences))


def _release(fleet: Fleet, _event: RestoreReleased, at: datetime) -> None:
    """Let the cell act again; the time that it stood still counts against no deadline."""
    since = fleet.cell.restored
    fleet.singles.put("cell", replace(fleet.cell, restored=None))
    _forget(fleet)
    if since is not None:
        extend(fleet, at - since)
        postpone(fleet, at - since)


def _forget(fleet: Fleet) -> None:
    for node_id in dict.fromkeys((*fleet.index.members("compared"), *fleet.index.members("differing"))):
        fleet.put_node(node_id, replace(fleet.nodes[node_id], compared=None, differences=()))


ROWS: EventRows = (
    EventRow(JournalRestored, of_nobody, _begin),
    EventRow(NodeCompared, of_node, _compare),
    EventRow(RestoreReleased, of_nobody, _release),
)
