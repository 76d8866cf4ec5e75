"""Agents of a simulated network that reset their own node's port, and read it, as orders of the real driver ask.

An agent marks what it begins, so an order that it has begun is told as what became of it and never done twice.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Protocol

from msgspec import Struct

from hostler.core.fabric.design import Port
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import DiscoverFabric, ResetPort
from hostler.drivers.infiniband.agent_pages import NoPageError
from hostler.ports import UnreachableError
from hostler.sim.world.world_context import Site

NEVER, LATE, BUSY, REFUSED = "unheard", "late", "busy", "refused"
UNCLEAR = ("unanswered", "cut")
FATES = (LATE, BUSY, REFUSED)
"""Fates of an agent's order beside those of tools: its answer comes late, or it does something else, or may not act."""
LATE_S = (20.0, 300.0)


class Host(Protocol):
    """A host whose agent is heard, or is not."""

    @property
    def heard(self) -> bool:
        """Whether its agent is heard."""


class BegunOrder(Struct):
    """Record on an agent's disk: the attempt that it began, when its answer stands, and that answer."""

    attempt: int
    ends: datetime
    result: str


class SimulatedPortAgents:
    """The agents' hand for `reset_port`. `reset` takes the port down; `fate` says what becomes of the next order."""

    kinds = frozenset({"reset_port"})

    def __init__(self, site: Site, hosts: Mapping[str, Host], fate: Callable[[], str], chance: Random) -> None:
        self._site = site
        self._hosts = hosts
        self._fate = fate
        self._chance = chance
        self._orders: dict[str, BegunOrder] = {}
        self.reset: Callable[[Port, str], None] = lambda _port, _fate: None

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Begin it once. Raises UnreachableError where no answer comes in time."""
        self._ask(node.id)
        if self._begun(operation) is not None:
            return await self.observe(operation, node)
        assert isinstance(operation.act, ResetPort), "no other order comes here"
        fate = self._fate()
        if fate == NEVER:
            raise UnreachableError(f"the agent of {node.id} never fetched the order")
        if fate in (BUSY, REFUSED):
            said = "checks are running" if fate == BUSY else "this agent may not act: it was started without that"
            return Outcome(operation.id, node.id, fate, said, attempt=operation.attempt)
        late_s = self._chance.uniform(*LATE_S) if fate == LATE else 0.0
        result = "unknown" if fate in UNCLEAR else "done"
        ends = self._site.clock.now + timedelta(seconds=late_s)
        self._orders[operation.id] = BegunOrder(operation.attempt, ends, result)
        self.reset(Port(node.id, operation.act.a.rpartition(":")[2]), fate)
        if late_s:
            raise UnreachableError(f"the agent of {node.id} did not answer in its time")
        return Outcome(operation.id, node.id, result, attempt=operation.attempt)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Say what the agent's record tells. Raises UnreachableError where it is not heard."""
        self._ask(node.id)
        mark = self._begun(operation)
        result = "not_done"
        if mark is not None:
            result = "busy" if self._site.clock.now < mark.ends else mark.result
        return Outcome(operation.id, node.id, result, attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing: a reset takes less time than calling it off."""

    def own_port(self, node: Node, wanted: DiscoverFabric) -> Port:
        """The port of the node's own that a page is about. Raises NoPageError where the agent is not heard."""
        if not self._hosts[node.id].heard:
            raise NoPageError(f"the agent of {node.id} did not answer in its time; see that it runs there")
        return Port(node.id, wanted.adapter)

    def _begun(self, operation: Operation) -> BegunOrder | None:
        mark = self._orders.get(operation.id)
        return mark if mark is not None and mark.attempt >= operation.attempt else None

    def _ask(self, node: str) -> None:
        if not self._hosts[node].heard:
            raise UnreachableError(f"the agent of {node} is not heard")
