"""Resets a port by `ibportstate`, and says it is done only once the port is seen active again.

Where a network's tools run on this host the switch's port is reset. Where they run elsewhere (at nodes, or it is UFM
that looks) the node's own agent resets its own end of the same cable, the only one that it can.
"""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import DiscoverFabric, ResetPort
from hostler.drivers.infiniband.agent_pages import NoPageError
from hostler.drivers.infiniband.diagnostics import PortAct
from hostler.drivers.infiniband.page_text import plain
from hostler.ports import OperationDriver, RefusedError, UnreachableError

KIND = "reset_port"
PORT_S = 30.0
"""Seconds for reading a node's own port by its agent."""

Refused = Callable[[Node, ResetPort], str]
"""Why a port may not be reset for a node now, "" where it may (`core.planning.port_reset`)."""
Places = Callable[[str], Mapping[str, FoundPort]]
"""Ports of a network by their names in its design, as the last whole validation bound them."""

_STATE = re.compile(r"^(LinkState|PhysLinkState):\.{2,}(\w+)\s*$", re.MULTILINE)


class PortTools(Protocol):
    """The tools that read and reset a port on this host."""

    async def port(self, how: DiscoverySource, at: FoundPort, act: PortAct) -> str:
        """Page of the tool. Raises ValueError where there is none."""
        ...


class PortAgents(Protocol):
    """The nodes' agents: their hand, None before the controller has started, and pages of their tools."""

    def hand(self) -> OperationDriver | None:
        """The agents' hand."""

    async def page(self, node: Node, wanted: DiscoverFabric) -> str:
        """Page of a tool at the node. Raises NoPageError."""


class PortResetter:
    """The driver of port resets."""

    kinds = frozenset({KIND})

    def __init__(
        self, here: PortTools, agents: PortAgents, fleet: Callable[[], Fleet], refused: Refused, places: Places
    ) -> None:
        self._here = here
        self._agents = agents
        self._fleet = fleet
        self._refused = refused
        self._places = places

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Reset it once. Raises RefusedError, and UnreachableError where the reset may have been heard."""
        act = _act(operation)
        if why := self._refused(node, act):
            raise RefusedError(why)
        how = self._source(act)
        if _by_agent(how):
            return await self._at_node(operation, node)
        at = self._at(act)
        try:
            await self._here.port(how, at, "query")
        except ValueError as error:
            return Outcome(operation.id, node.id, "failed", f"nothing was sent: {plain(str(error))}")
        try:
            page = await self._here.port(how, at, "reset")
        except ValueError as error:
            raise UnreachableError(f"{act.z} may have been reset: {plain(str(error))}; it is read again") from error
        if "After PortInfo set:" not in page:
            raise UnreachableError(f"{act.z} may have been reset: `ibportstate` does not say so; it is read again")
        return await self.observe(operation, node)

    async def _at_node(self, operation: Operation, node: Node) -> Outcome:
        """Have the agent do it. An answer that did not come, or says nothing, is observed."""
        if (hand := self._agents.hand()) is None:
            return Outcome(operation.id, node.id, "failed", "nothing was sent: the controller has not started")
        said = await hand.perform(operation, node)
        if said.result in ("done", "unknown"):
            return await self.observe(operation, node)
        return said

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Done where the port is up and active. Raises UnreachableError where it is not yet, or is not told."""
        act = _act(operation)
        try:
            how = self._source(act)
            if _by_agent(how):
                never = await self._never_begun(operation, node)
                if never is not None:
                    return never
                page = await self._agents.page(node, _own_port(act))
            else:
                page = await self._here.port(how, self._at(act), "query")
        except (ValueError, RefusedError, NoPageError) as error:
            raise UnreachableError(
                f"{act.z or 'the port'} was not read: {plain(str(error))}; it is read again"
            ) from error
        state = dict(_STATE.findall(page))
        if state != {"LinkState": "Active", "PhysLinkState": "LinkUp"}:
            told = ", ".join(f"{name} {said}" for name, said in sorted(state.items())) or "no state"
            raise UnreachableError(f"{act.z} is not active yet: {told}; it is read again")
        return Outcome(operation.id, node.id, "done", f"{act.z} is active", attempt=operation.attempt)

    async def _never_begun(self, operation: Operation, node: Node) -> Outcome | None:
        """The agent's word that it never began the reset, which no state of the port could tell."""
        if (hand := self._agents.hand()) is None:
            raise UnreachableError("the controller has not started; ask again in a minute")
        said = await hand.observe(operation, node)
        if said.result == "busy":
            raise UnreachableError(f"the agent of {node.id} is busy: {plain(said.detail)}; wait until it has ended")
        return said if said.result not in ("done", "unknown") else None

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing: a reset takes less time than calling it off."""

    def _source(self, act: ResetPort) -> DiscoverySource:
        fabric = self._fleet().fabrics.get(act.fabric)
        if fabric is None:
            raise RefusedError(f"no network {act.fabric or '(none)'}; see `hostler fabric list`")
        how = fabric.source
        if how.tool == "lldp":
            raise RefusedError(f"network {fabric.name} is no InfiniBand; reset the port by hand")
        return how

    def _at(self, act: ResetPort) -> FoundPort:
        at = self._places(act.fabric).get(act.z)
        if at is None:
            raise RefusedError(
                f"no validation since the controller began has bound {act.z}; validate the network first"
            )
        return at


def _by_agent(how: DiscoverySource) -> bool:
    """Whether the network's tools run elsewhere than on this host."""
    return bool(how.nodes) or how.tool == "ufm"


def _own_port(act: ResetPort) -> DiscoverFabric:
    return DiscoverFabric("own_port", act.a.rpartition(":")[2], 1, PORT_S)


def _act(operation: Operation) -> ResetPort:
    assert isinstance(operation.act, ResetPort), "the table of operations leads here"
    return operation.act
