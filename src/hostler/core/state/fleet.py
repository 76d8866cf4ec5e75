"""The fleet in memory: tables of nouns and their index, each under an overlay of what the current step has changed.

Reading sees the overlay, `merge` makes it part of the base after the commit, `drop` forgets it. The index follows the
tables, so a decision never walks 100,000 nodes.
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any

from hostler.core.state.assets import Asset
from hostler.core.state.cases import Incident, Ticket
from hostler.core.state.cell_record import CellRecord, StoredAnswer
from hostler.core.state.change_control import Approval, Rollout
from hostler.core.state.configuration import Configuration, Policy, Pool
from hostler.core.state.fabrics import Fabric, FabricCase
from hostler.core.state.fleet_index import Index
from hostler.core.state.goldens import Golden
from hostler.core.state.index_keys import index_keys, keeps_lasting_keys, lasting_keys
from hostler.core.state.links import LinkCase
from hostler.core.state.manual_tests import ManualTest
from hostler.core.state.model import Hold, Node, Part, Tally
from hostler.core.state.overlay_table import Table
from hostler.core.state.packed_strings import one_line
from hostler.core.state.part_table import PartTable
from hostler.core.state.rack_runs import Rack
from hostler.core.state.rma_cases import RmaCase, StockLine
from hostler.core.state.scopes import Scope
from hostler.core.state.windows import Window

ANSWERS_KEPT = 10_000
"""Idempotency keys remembered, the latest; a request with an older one is a new request, and the API says so."""
SHELF_KEPT = 10_000
"""Parts remembered that are in no node, the latest; of older ones the journal tells."""
ACTS_KEPT = 1_000
TALLIED_KEPT = 20_000
"""Nodes and parts of which it is remembered what came back; the ones longest without are forgotten first."""


class Fleet:
    """The fold of the journal. Changed only by `fold.evolve`; `merge` after the commit, `drop` when it failed."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.nodes: Table[Node] = Table()
        self.assets: Table[Asset] = Table()
        self.parts = PartTable()
        self.holds: Table[Hold] = Table()
        self.windows: Table[Window] = Table()
        self.tickets: Table[Ticket] = Table()
        self.approvals: Table[Approval] = Table()
        self.rollouts: Table[Rollout] = Table()
        self.incidents: Table[Incident] = Table()
        self.answers: Table[StoredAnswer] = Table()
        self.retired: Table[datetime] = Table()
        self.tallies: Table[tuple[Tally, ...]] = Table()
        self.fabrics: Table[Fabric] = Table()
        self.fabric_cases: Table[FabricCase] = Table()
        self.link_cases: Table[LinkCase] = Table()
        self.manual_tests: Table[ManualTest] = Table()
        self.rma_cases: Table[RmaCase] = Table()
        self.stock: Table[StockLine] = Table()
        self.goldens: Table[Golden] = Table()
        self.racks: Table[Rack] = Table()
        self.index = Index()
        self.singles: Table[CellRecord] = Table({"cell": CellRecord()})
        self.configurations: Table[Configuration] = Table(
            {"active": configuration or Configuration(Policy(rules={}, rungs={}))}
        )

    @property
    def cell(self) -> CellRecord:
        """Record of the cell as a whole."""
        return self.singles["cell"]

    @property
    def configuration(self) -> Configuration:
        """The active configuration."""
        return self.configurations["active"]

    @property
    def policy(self) -> Policy:
        """Policy of the whole cell: brake, silence, budgets of domains. For one node ask `policy_of`."""
        return self.configuration.policy

    @property
    def rollout(self) -> Rollout | None:
        """The rollout that runs."""
        running = self.cell.rollout
        return self.rollouts[running] if running else None

    def configuration_of(self, node: Node) -> Configuration:
        """The configuration that decides about this node: while one is rolled out, nodes it has reached follow it."""
        running = self.cell.rollout
        rollout = self.rollouts[running] if running else None
        if rollout is None or rollout.configuration is None or not rollout.reaches(node.id, node.pool):
            return self.configurations["active"]
        return rollout.configuration

    def policy_of(self, node: Node) -> Policy:
        """The rules, rungs and timings that hold for this node."""
        return self.configuration_of(node).policy

    def pool_of(self, node: Node) -> Pool | None:
        """The node's pool, as the configuration that decides about the node has it."""
        return self.configuration_of(node).pools.get(node.pool)

    @property
    def pools(self) -> dict[str, Pool]:
        """The pools with the targets and budgets in force; a rollout changes those of pools that it reached whole."""
        rollout, pools = self.rollout, self.configuration.pools
        if rollout is None or rollout.configuration is None:
            return pools
        fresh = rollout.configuration.pools
        return {name: fresh.get(name, pool) if rollout.reaches_whole(name) else pool for name, pool in pools.items()}

    def put_node(self, node_id: str, node: Node | None) -> None:
        """Set or delete a node and keep the index in step."""
        before = self.nodes.get(node_id)
        self.nodes.put(node_id, node)
        self._reindex(node_id, index_keys(before) if before else (), index_keys(node) if node else ())
        if before is None or node is None or not keeps_lasting_keys(before, node):
            self._reindex(node_id, lasting_keys(before) if before else (), lasting_keys(node) if node else ())

    def _reindex(self, member: str, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        if old == new:
            return
        for key in old:
            if key not in new:
                self.index.remove(key, member)
        for key in new:
            if key not in old:
                self.index.add(key, member)

    def put_asset(self, asset_id: str, asset: Asset | None) -> None:
        """Set or delete an asset and keep the index of its rack in step."""
        before = self.assets.get(asset_id)
        old, new = ((one.position.rack,) if one is not None and one.position.rack else () for one in (before, asset))
        self._list_under("assets", asset_id, old, new)
        self.assets.put(asset_id, asset)

    def assets_of(self, rack: str) -> list[Asset]:
        """The assets that stand in the rack, in the order of their ids."""
        return [self.assets[i] for i in self.index.members(f"assets:{rack}")] if rack else []

    def put_part(self, serial: str, part: Part | None) -> None:
        """Set or delete a part and keep the index of the shelf in step."""
        serial = one_line(serial)
        was_loose = self.parts.is_loose(serial)
        self.parts.put(serial, part)
        if part is not None and not part.node:
            self.index.add("shelf", serial)
        elif was_loose:
            self.index.remove("shelf", serial)

    def tallied(self, node_id: str, part: str) -> str:
        """The key under which it is counted what comes back: a part's serial wherever it is, its place, or the node."""
        if not part:
            return f"node:{node_id}"
        return f"part:{part}" if part in self.parts else f"place:{node_id}/{part}"

    def tallies_of(self, node_id: str, part: str) -> tuple[Tally, ...]:
        """Tallies of what came back on the node (part "") or on the part."""
        return () if self.tallies.bare else self.tallies.get(self.tallied(node_id, part)) or ()

    def put_tallies(self, node_id: str, part: str, tallies: tuple[Tally, ...], at: datetime) -> None:
        """Set what came back there, as the latest; of the others, those that count no more are forgotten."""
        key = self.tallied(node_id, part)
        self.tallies.put(key, None)
        if tallies:
            self.tallies.put(key, tallies)
        too_many = len(self.tallies) > TALLIED_KEPT
        for old in list(islice(self.tallies, 2)):
            if too_many or all(tally.until <= at for tally in self.tallies[old]):
                self.tallies.put(old, None)

    def put_ticket(self, ticket_id: str, ticket: Ticket | None) -> None:
        """Set or delete a ticket and keep the index in step."""
        self._list_under("ticket", ticket_id, _about(self.tickets.get(ticket_id)), _about(ticket))
        self.tickets.put(ticket_id, ticket)

    def put_rma_case(self, case_id: str, case: RmaCase | None) -> None:
        """Set or delete a return to the vendor and keep the index in step."""
        self._list_under("rma", case_id, _about(self.rma_cases.get(case_id)), _about(case))
        self.rma_cases.put(case_id, case)

    def rma_cases_of(self, node_id: str) -> list[RmaCase]:
        """The open returns about a node and its parts, in the order of their ids."""
        return [] if self.rma_cases.bare else [self.rma_cases[i] for i in self.index.members(f"rma:{node_id}")]

    def put_golden(self, golden_id: str, golden: Golden | None) -> None:
        """Set or delete what a stack's bits are, and keep the index of the witnesses that are wanted in step."""
        before = self.goldens.get(golden_id)
        old, new = (one.wanted if one is not None else () for one in (before, golden))
        self._list_under("witness", golden_id, old, new)
        self.goldens.put(golden_id, golden)

    def disputes_seen_by(self, node_id: str) -> list[Golden]:
        """The goldens of which a difference is undecided, and of which the node is a peer."""
        key = f"witness:{node_id}"
        return [] if self.index.lacks(key) else [self.goldens[i] for i in self.index.members(key)]

    def put_approval(self, approval_id: str, approval: Approval | None) -> None:
        """Set or delete an approval and keep the index of the nodes it concerns in step."""
        before = self.approvals.get(approval_id)
        old, new = before.nodes if before else (), approval.nodes if approval else ()
        self._list_under("approval", approval_id, old, new)
        self.approvals.put(approval_id, approval)

    def approvals_for(self, node_id: str) -> list[Approval]:
        """The intents about this node that wait for a second person."""
        return [] if self.approvals.bare else [self.approvals[i] for i in self.index.members(f"approval:{node_id}")]

    def put_incident(self, incident_id: str, incident: Incident | None) -> None:
        """Set or delete an incident and keep the index of its members in step."""
        before = self.incidents.get(incident_id)
        self._list_under(
            "incident", incident_id, before.members if before else (), incident.members if incident else ()
        )
        self.incidents.put(incident_id, incident)

    def _list_under(self, entry: str, name: str, old: Iterable[str], new: Iterable[str]) -> None:
        """Take the name out of the entries of nodes that it is no longer about, and into those of new ones."""
        before, after = frozenset(old), frozenset(new)
        for node_id in sorted(before - after):
            self.index.remove(f"{entry}:{node_id}", name)
        for node_id in sorted(after - before):
            self.index.add(f"{entry}:{node_id}", name)

    def incidents_of(self, node_id: str) -> list[Incident]:
        """The incidents that the node is a member of."""
        key = f"incident:{node_id}"
        return [] if self.index.lacks(key) else [self.incidents[i] for i in self.index.members(key)]

    def spares(self, sku: str) -> list[str]:
        """Ids of the ready spares of this SKU, sorted."""
        return self.index.members(f"spare:{sku}")

    def tickets_about(self, node_id: str) -> list[Ticket]:
        """The open tickets about a node, in the order of their ids."""
        key = f"ticket:{node_id}"
        return [] if self.index.lacks(key) else [self.tickets[i] for i in self.index.members(key)]

    def cases_of(self, fabric: str) -> list[FabricCase]:
        """The open findings of a network, in the order in which they were opened."""
        return [] if self.fabric_cases.bare else [c for c in self.fabric_cases.values() if c.fabric == fabric]

    def has_known(self, node_id: str) -> bool:
        """Whether the id is or was a node's; ids are never used again."""
        return node_id in self.nodes or node_id in self.retired

    def resolve(self, name: str) -> Node | None:
        """A node by id, or by a current binding such as a serial or a hostname."""
        found = self.nodes.get(name)
        if found is not None:
            return found
        for kind in ("hostname", "serial", "kubernetes", "slurm"):
            members = self.index.members(f"{kind}:{name}")
            if len(members) == 1:
                return self.nodes.get(members[0])
        return None

    def put_hold(self, hold_id: str, hold: Hold | None) -> None:
        """Set or delete a hold and keep the index of what is held in step."""
        before = self.holds.get(hold_id)
        old, new = ((one.scope.text,) if one is not None else () for one in (before, hold))
        self._list_under("hold", hold_id, old, new)
        self.holds.put(hold_id, hold)

    def holds_on(self, scopes: Iterable[Scope]) -> list[Hold]:
        """Holds on any of these scopes, the oldest first."""
        if self.holds.bare:
            return []
        keys = (f"hold:{scope.text}" for scope in frozenset(scopes))
        found = [self.holds[i] for key in keys if not self.index.lacks(key) for i in self.index.members(key)]
        return sorted(found, key=lambda hold: (hold.since, hold.id))

    def holds_of(self, node_id: str) -> list[Hold]:
        """Holds on this node by its id, the oldest first; those on its rack, pool or cluster are left out."""
        return self.holds_on((Scope("", node_id),))

    def _tables(self) -> tuple[Table[Any] | PartTable | Index, ...]:
        return (  # one overlay discipline for tables of many types
            self.nodes,
            self.assets,
            self.parts,
            self.holds,
            self.windows,
            self.tickets,
            self.approvals,
            self.rollouts,
            self.incidents,
            self.answers,
            self.retired,
            self.tallies,
            self.fabrics,
            self.fabric_cases,
            self.link_cases,
            self.manual_tests,
            self.rma_cases,
            self.stock,
            self.goldens,
            self.racks,
            self.index,
            self.singles,
            self.configurations,
        )

    def merge(self) -> None:
        """Make what the step has changed permanent."""
        for table in self._tables():
            if table.over:
                table.merge()

    def drop(self) -> None:
        """Forget what the step has changed."""
        for table in self._tables():
            table.drop()

    def committed(self) -> "Fleet":
        """A view of what is committed: it shares the tables' bases and never sees an overlay."""
        view = Fleet()
        for mine, its in zip(self._tables(), view._tables(), strict=True):
            its.base = mine.base
        return view


def _about(row: Ticket | RmaCase | None) -> tuple[str, ...]:
    return () if row is None else (row.node,)
