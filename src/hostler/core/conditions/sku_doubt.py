"""When a SKU is more likely wrong than the nodes held against it: several lack the same, and none is as it says."""

from collections.abc import Iterable, Iterator
from itertools import islice

from hostler.core.conditions.sku_match import Gap, gaps
from hostler.core.state.counting import first_names
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Phase

ALIKE = 2
"""So many others must show the same gap: three machines that came alike are no accident."""
LOOKED_AT = 64
"""Nodes of a phase that are compared."""
NAMED = 3


def doubt_of_sku(fleet: Fleet, node: Node, found: Iterable[Gap]) -> str:
    """Why the node's SKU is likely wrong about one of these gaps, "" where nothing says so.

    A node of the SKU that is healthy, in a pool or spare, shows that machines are as the SKU says. What this node has
    shown before is its own loss.
    """
    pools = (pool.name for pool in fleet.pools.values() if pool.sku == node.sku)
    if any(fleet.index.count(key) for key in (f"spare:{node.sku}", *(f"healthy:{pool}" for pool in pools))):
        return ""
    others = [(peer.id, {_what(gap) for gap in gaps(fleet, peer)}) for peer in _peers(fleet, node)]
    for gap in found:
        if not gap.seen or gap.missing:
            continue
        alike = [peer for peer, theirs in others if _what(gap) in theirs]
        whole = any(all(kind != gap.kind for kind, _, _ in theirs) for _, theirs in others)
        if len(alike) >= ALIKE and not whole:
            return f"{first_names(alike, NAMED)} of SKU {node.sku} show the same of {gap.kind}: the SKU is likely wrong"
    return ""


def _what(gap: Gap) -> tuple[str, str, str]:
    return gap.kind, gap.expected, gap.found


def _peers(fleet: Fleet, node: Node) -> Iterator[Node]:
    """Peers of the SKU that are held against it now."""
    for phase in (Phase.seatrial, Phase.triage):
        for peer in islice(fleet.index.members(f"phase:{phase.value}"), LOOKED_AT):
            other = fleet.nodes[peer]
            if other.id != node.id and other.sku == node.sku and other.inventory_boot == other.boot_id != "":
                yield other
