"""A cloud's node auto-repair: a node that has been unhealthy for ten minutes is replaced, unless too many are."""

from hostler.core.state import events as e
from hostler.core.state.verbs.remedies import RequestReplacement
from hostler.sim.peers.condition_coverage import worth_acting
from hostler.sim.simulation_loop import Drive
from hostler.sim.world.people import Errand

UNHEALTHY_S = 600.0
"""How long a node must be unhealthy before it is repaired: 10 min for accelerators, 30 for the rest, which is kinder.

Source: Amazon EKS user guide, "Automatically repair nodes in EKS clusters".
"""
CAP = 0.20
"""Unhealthy share of the group beyond which nothing is repaired (the same page)."""
AGAIN_S = 60.0


class AutoRepair:
    """Follows the conditions of the nodes, and asks for the replacement of those whose ten minutes are over."""

    def __init__(self, drive: Drive) -> None:
        self._world = drive.world
        self._unhealthy: dict[str, dict[str, None]] = {}
        self._waiting: dict[str, None] = {}
        drive.watchers.append(self.see)

    def see(self, record: e.Record) -> None:
        """Note conditions that are raised, cleared and answered."""
        match record.event:
            case e.ConditionRaised(condition=c) if worth_acting(c):
                self._unhealthy.setdefault(c.node, {})[c.id] = None
                self._wait(c.node, UNHEALTHY_S)
            case e.ConditionCleared(node=node, condition=condition) if node in self._unhealthy:
                self._unhealthy[node].pop(condition, None)
                if not self._unhealthy[node]:
                    del self._unhealthy[node]
            case e.NodeReleased(node=node):
                self._unhealthy.pop(node, None)
            case _:
                pass

    def _wait(self, node: str, seconds: float) -> None:
        if node not in self._waiting:
            self._waiting[node] = None
            self._world.clock.after(seconds, lambda: self._repair(node))

    def _repair(self, node: str) -> None:
        del self._waiting[node]
        if node not in self._unhealthy:
            return
        if len(self._unhealthy) > CAP * len(self._world.hosts):
            self._wait(node, AGAIN_S)
            return
        errand = Errand(RequestReplacement(now=True), node, "auto-repair", "unhealthy for ten minutes")
        self._world.people.mention(errand)


def auto_repair(drive: Drive) -> None:
    """The cloud looks after the nodes; the customer's engineers after the job."""
    AutoRepair(drive)
