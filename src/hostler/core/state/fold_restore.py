"""Fold of a restore: all stands still, nodes are compared with reality, a person lets it act again."""

from datetime import datetime

from msgspec.structs import replace

from hostler.core.state import events as e
from hostler.core.state import fold_change_control
from hostler.core.state.deadlines import extend
from hostler.core.state.fleet import Fleet

DIFFERENCES_KEPT = 32


def begin(fleet: Fleet, event: e.JournalRestored, at: datetime) -> None:
    """From here on nothing is disturbed; what an earlier restore found is forgotten."""
    fleet.singles.put("cell", replace(fleet.cell, restored=at, copied=event.through))
    _forget(fleet)


def compare(fleet: Fleet, event: e.NodeCompared, at: datetime) -> None:
    """Add what is known of the node by now; of each kind and subject the first difference counts."""
    node = fleet.nodes[event.node]
    known = {(d.what, d.journal) for d in node.differences}
    fresh = tuple(d for d in event.differences if (d.what, d.journal) not in known)
    differences = (*node.differences, *fresh)[:DIFFERENCES_KEPT]
    compared = node.compared or (at if event.heard else None)
    fleet.put_node(node.id, replace(node, compared=compared, differences=differences))


def release(fleet: Fleet, at: datetime) -> None:
    """Let the cell act again; the time that it stood still counts against no deadline."""
    since = fleet.cell.restored
    fleet.singles.put("cell", replace(fleet.cell, restored=None))
    _forget(fleet)
    if since is not None:
        extend(fleet, at - since)
        fold_change_control.postpone(fleet, at - since)


def _forget(fleet: Fleet) -> None:
    for node_id in dict.fromkeys((*fleet.index.members("compared"), *fleet.index.members("differing"))):
        fleet.put_node(node_id, replace(fleet.nodes[node_id], compared=None, differences=()))
