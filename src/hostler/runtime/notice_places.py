"""Position of a node, and whom it served, when a record about it was made: a tenant is told of its own time alone."""

import asyncio
from collections.abc import Callable, Iterator

from hostler.core.notify.notices import Place
from hostler.core.state import events as e
from hostler.core.state.events import Record
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Assignment, Node
from hostler.core.state.scopes import FLEET, POOL, Scope
from hostler.journal.named_records import each_record, record_names
from hostler.ports import Journal, JournalError, RecordWindow

SERVES = record_names(e.NodeAssigned, e.NodeRegistered, e.NodeReleased)
"""Records that say whom a node serves."""


class NoticePlaces:
    """Answers from the fleet where it has not changed since, else from the node's history in the journal."""

    def __init__(self, view: Callable[[], Fleet], journal: Journal) -> None:
        self._view = view
        self._journal = journal

    async def of(self, names: tuple[str, ...], record: Record) -> dict[str, tuple[Place, ...]]:
        """The places of nodes and scopes; a node that is not known any more has none."""
        return {name: await self._place(name, record) for name in names}

    async def _place(self, name: str, record: Record) -> tuple[Place, ...]:
        fleet = self._view()
        node = fleet.nodes.get(name)
        if node is None:
            return tuple(_of_scope(fleet, name))
        return (_placed(node, await self._assignment(node, record)),)

    async def _assignment(self, node: Node, record: Record) -> Assignment | None:
        now = node.assignment
        if isinstance(record.event, e.NodeAssigned):
            return record.event.assignment
        if now is not None and now.since <= record.at:
            return now
        try:
            return await asyncio.to_thread(self._before, node.id, record.seq)
        except JournalError:
            return None

    def _before(self, node: str, seq: int) -> Assignment | None:
        """The assignment just before the record: that of the last event that says so."""
        wanted = RecordWindow(before=seq, subject=node, names=SERVES)
        for record in each_record(self._journal, wanted, 1):
            match record.event:
                case e.NodeAssigned(node=name, assignment=assignment) if name == node:
                    return assignment
                case e.NodeRegistered(node=registered) if registered.id == node:
                    return registered.assignment
                case e.NodeReleased(node=name) if name == node:
                    return None
                case _:
                    continue
        return None


def _placed(node: Node, assignment: Assignment | None) -> Place:
    return Place(
        pool=assignment.pool if assignment else "",
        tenant=assignment.tenant if assignment else "",
        site=node.position.site,
        rack=node.position.rack,
        serial=node.binding("serial"),
    )


def _of_scope(fleet: Fleet, scope: str) -> Iterator[Place]:
    """The pools that a scope touches: one, all of them, or those that nodes of a failure domain serve."""
    told = Scope.of(scope)
    pools = fleet.configuration.pools
    if told.kind == POOL and told.name in pools:
        yield Place(pool=told.name, tenant=pools[told.name].tenant)
    elif told.kind == FLEET:
        yield from (Place(pool=one.name, tenant=one.tenant) for one in pools.values())
    elif told.kind and told.name:
        members = (fleet.nodes[node_id] for node_id in fleet.index.members(told.shared))
        served = {node.pool: node.assignment.tenant for node in members if node.assignment is not None}
        rack = told.name if told.kind == "rack" else ""
        yield from (Place(pool=pool, tenant=tenant, rack=rack) for pool, tenant in sorted(served.items()))
