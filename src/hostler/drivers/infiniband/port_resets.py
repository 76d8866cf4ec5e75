"""Resets a switch's port by `ibportstate` on this host, and says it is done only once the port is seen active again."""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from hostler.core.fabric.discovery import FoundPort
from hostler.core.state.fabrics import DiscoverySource
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import ResetPort
from hostler.drivers.infiniband.diagnostics import PortAct
from hostler.drivers.infiniband.page_text import plain
from hostler.ports import RefusedError, UnreachableError

KIND = "reset_port"

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


class PortResetter:
    """The driver of port resets, where a network's tools run on this host. An agent is asked for none."""

    kinds = frozenset({KIND})

    def __init__(self, here: PortTools, fleet: Callable[[], Fleet], refused: Refused, places: Places) -> None:
        self._here = here
        self._fleet = fleet
        self._refused = refused
        self._places = places

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Reset it once. Raises RefusedError, and UnreachableError where the reset may have been heard."""
        act = _act(operation)
        if why := self._refused(node, act):
            raise RefusedError(why)
        how, at = self._source(act), self._at(act)
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

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Done where the port is up and active. Raises UnreachableError where it is not yet, or is not told."""
        act = _act(operation)
        try:
            page = await self._here.port(self._source(act), self._at(act), "query")
        except (ValueError, RefusedError) as error:
            raise UnreachableError(
                f"{act.z or 'the port'} was not read: {plain(str(error))}; it is read again"
            ) from error
        state = dict(_STATE.findall(page))
        if state != {"LinkState": "Active", "PhysLinkState": "LinkUp"}:
            told = ", ".join(f"{name} {said}" for name, said in sorted(state.items())) or "no state"
            raise UnreachableError(f"{act.z} is not active yet: {told}; it is read again")
        return Outcome(operation.id, node.id, "done", f"{act.z} is active", attempt=operation.attempt)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Do nothing: a reset takes less time than calling it off."""

    def _source(self, act: ResetPort) -> DiscoverySource:
        fabric = self._fleet().fabrics.get(act.fabric)
        if fabric is None:
            raise RefusedError(f"no network {act.fabric or '(none)'}; see `hostler fabric list`")
        how = fabric.source
        if how.tool not in ("ibnetdiscover", "iblinkinfo", "ibdiagnet") or how.nodes:
            raise RefusedError(
                f"the tools of network {fabric.name} do not run on the controller's host; reset the port by hand"
            )
        return how

    def _at(self, act: ResetPort) -> FoundPort:
        at = self._places(act.fabric).get(act.z)
        if at is None:
            raise RefusedError(
                f"no validation since the controller began has bound {act.z}; validate the network first"
            )
        return at


def _act(operation: Operation) -> ResetPort:
    assert isinstance(operation.act, ResetPort), "the table of operations leads here"
    return operation.act
