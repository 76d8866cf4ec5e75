"""Hosts of a network that are known to have no power: nobody expects them to answer a discovery."""

from hostler.core.state.fabrics import Fabric
from hostler.core.state.fleet import Fleet
from hostler.core.state.live_state import OFF, LiveState
from hostler.core.state.model import Phase

_AWAY = frozenset({Phase.registered, Phase.rma})
"""Phases in which a machine was never switched on, or is at its vendor."""


def without_power(fleet: Fleet, live: LiveState, fabric: Fabric) -> frozenset[str]:
    """Names in the network's design of hosts that are seen off, were never switched on, or are at their vendor."""
    found = ((name, fleet.resolve(name)) for name in fabric.hosts)
    return frozenset(
        name for name, node in found if node is not None and (node.phase in _AWAY or live.of(node.id).power == OFF)
    )
