"""Turns away nodes that have left a cluster and are listed there again: shut at once, then taken off the list.

It acts on what is recorded (`node.uninvited`), and only on Nodes of nodes that left this very cluster by our hand.
"""

import asyncio
from collections.abc import Callable, Iterator

from hostler.core.conditions.own_conditions import UNINVITED
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import FLEET, Node
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.logs.structured import logger
from hostler.ports import PortError

log = logger()

TURN_S = 1.0


class RejoinGuard:
    """One cluster's. `fleet` gives the cell's."""

    def __init__(self, scheduler: KubernetesScheduler, fleet: Callable[[], Fleet]) -> None:
        self._scheduler = scheduler
        self._fleet = fleet

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(TURN_S)

    async def turn(self) -> None:
        """Turn away who stands there now; what could not be done is tried again at the next turn."""
        fleet = self._fleet()
        for node in self._uninvited(fleet):
            try:
                told = await self._scheduler.turn_away(node, keep=_is_kept(fleet, node, self._scheduler.cluster))
            except PortError as error:
                told = str(error)
            if told:
                log.info("node_turned_away", node=node.id, told=told)

    def _uninvited(self, fleet: Fleet) -> Iterator[Node]:
        for node_id in fleet.index.members("ailing"):
            node = fleet.nodes[node_id]
            if node.left_cluster == self._scheduler.cluster and any(c.type == UNINVITED for c in node.conditions):
                yield node


def _is_kept(fleet: Fleet, node: Node, cluster: str) -> bool:
    """Somebody wants the node, the cluster or all left as they are: it is shut there, which disturbs nobody."""
    paused = {FLEET, f"cluster:{cluster}", node.id} & set(fleet.cell.paused)
    return bool(paused) or bool(fleet.holds_on([node.id, FLEET, f"cluster:{cluster}"]))
