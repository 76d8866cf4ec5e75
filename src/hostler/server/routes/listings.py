"""Lists: conditions, plans, operations, waits, parts, pools, tickets, holds, assets."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from litestar import Router, get
from litestar.params import FromPath, FromQuery

from hostler.core.policy import pool_places
from hostler.core.policy.guards import scopes
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Asset, Hold, Node, Part, Plan, Ticket
from hostler.core.state.verbs.facts import Permission
from hostler.server.api_resources import (
    ConditionRow,
    OperationRow,
    PartView,
    PoolView,
    ShadowRow,
    WaitingRow,
    history_row,
    shadow_rows,
    waiting_row,
)
from hostler.server.app_state import AppState
from hostler.server.auth import needs
from hostler.server.dependencies import TheRoom, Wanted, Who
from hostler.server.fleet_status import own_pools, pool_view
from hostler.server.maintenance_report import (
    Maintenance,
    NoticeRow,
    WorkRow,
    notices_of,
    opened_tickets,
    repair,
    work_of,
)
from hostler.server.paging import Limit, Name, Page, Selection, listed, paged
from hostler.server.problems import unknown
from hostler.server.routes.nodes import Before, archived, history, ids_for, reached, selected, within_reach
from hostler.server.token_scope import sees
from hostler.server.tokens import Identity

SEE = [needs(Permission.see)]
SEE_CELL = [needs(Permission.see_cell)]
REPAIR_RECORDS = 1_000

T = TypeVar("T")


def _by_index(
    room: AppState, who: Identity, wanted: Selection, key: str, items: Callable[[Node], Iterable[T]]
) -> Page[T]:
    """A page of what the nodes under one index entry give."""
    return paged(
        within_reach(room, who, room.fleet.index.members(key)),
        wanted,
        lambda i: [item for node in selected(room, who, wanted, i) for item in items(node)],
    )


@get("/conditions", guards=SEE)
async def list_conditions(room: TheRoom, who: Who, wanted: Wanted) -> Page[ConditionRow]:
    """Conditions that stand, by node."""

    def rows(node: Node) -> list[ConditionRow]:
        plan, rack = node.plan.name if node.plan else "", node.position.rack
        return [
            ConditionRow(c, node.phase, node.pool, rack, plan)
            for c in node.conditions
            if wanted.condition in ("", c.type)
        ]

    return _by_index(room, who, wanted, "ailing", rows)


@get("/plans", guards=SEE)
async def list_plans(room: TheRoom, who: Who, wanted: Wanted) -> Page[Plan]:
    """Plans that are proposed, running or being taken back."""
    return _by_index(room, who, wanted, "planned", lambda node: (node.plan,) if node.plan else ())


@get("/operations", guards=SEE)
async def list_operations(room: TheRoom, who: Who, wanted: Wanted) -> Page[OperationRow]:
    """Operations under way, and those given up that may still land."""

    def rows(node: Node) -> list[OperationRow]:
        operations = (*node.under_way, *node.settling)
        return [OperationRow(o, node.plan.name if node.plan and o.plan else "", node.pool) for o in operations]

    return _by_index(room, who, wanted, "operating", rows)


@get("/shadows", guards=SEE)
async def list_shadows(room: TheRoom, who: Who, wanted: Wanted) -> Page[ShadowRow]:
    """Effects that shadow rules would have had, by node."""
    return _by_index(room, who, wanted, "shadowed", shadow_rows)


@get("/waiting", guards=SEE)
async def list_waiting(room: TheRoom, who: Who, wanted: Wanted) -> Page[WaitingRow]:
    """Nodes that wait, since when, and for what."""
    return _by_index(room, who, wanted, "waiting", lambda node: (waiting_row(node),))


@get("/parts", guards=SEE)
async def list_parts(
    room: TheRoom, who: Who, wanted: Wanted, kind: Name = "", shelf: FromQuery[bool] = False
) -> Page[Part]:
    """Parts in nodes, by node; with `shelf=true` those that are in none."""
    parts = room.fleet.parts
    if shelf:
        if not who.whole:
            return Page((), seq=wanted.seq)
        loose = room.fleet.index.members("shelf")
        return paged(loose, wanted, lambda s: [p for p in (parts.get(s),) if p and not p.node and kind in ("", p.kind)])

    def rows(node_id: str) -> list[Part]:
        nodes = reached(room, who, wanted, node_id)
        return [part for node in nodes for part in parts.of(node.id) if kind in ("", part.kind)]

    return paged(ids_for(room, who, wanted), wanted, rows)


@get("/parts/{serial:str}", guards=SEE)
async def get_part(
    room: TheRoom, who: Who, serial: FromPath[str], before: Before = None, limit: Limit = 100
) -> PartView:
    """One part by its serial, with its history across nodes, newest first."""
    part = room.fleet.parts.get(serial)
    node = room.fleet.nodes.get(part.node) if part and part.node else None
    if not who.whole and (node is None or not sees(who, node)):
        raise unknown("part", serial)
    if not who.whole:
        return PartView(part, ())  # where it was before is other people's business
    records = await asyncio.to_thread(room.cell.journal.history, serial, before, limit)
    if part is None and not records:
        raise unknown("part", serial)
    cursor = str(records[-1].seq) if len(records) == limit else ""
    return PartView(part, tuple(history_row(r) for r in records), cursor, await archived(room, cursor))


@get("/pools", guards=SEE)
async def list_pools(room: TheRoom, who: Who, wanted: Wanted) -> Page[PoolView]:
    """Pools with their counts."""
    pools = {pool.name: pool for pool in own_pools(room.fleet, who)}
    page = listed(((name, pool) for name, pool in pools.items() if wanted.sku in ("", pool.sku)), wanted)
    dark = pool_places.dark(room.scene())
    return page.of(pool_view(room.cell, pool, dark) for pool in page.items)


@get("/pools/{name:str}", guards=SEE)
async def get_pool(room: TheRoom, who: Who, name: FromPath[str]) -> PoolView:
    """One pool with its counts."""
    found = next((pool for pool in own_pools(room.fleet, who) if pool.name == name), None)
    if found is None:
        raise unknown("pool", name)
    return pool_view(room.cell, found, pool_places.dark(room.scene()))


@get("/tickets", guards=SEE)
async def list_tickets(room: TheRoom, who: Who, wanted: Wanted, node: Name = "") -> Page[Ticket]:
    """Open tickets; closed ones stand in the repair history (GET /v1/maintenance?node=…)."""
    found = ((t.id, t) for t in room.fleet.tickets.values() if node in ("", t.node))
    return listed(((key, t) for key, t in found if _concerns(room, who, wanted, t.node)), wanted)


def _concerns(room: AppState, who: Identity, wanted: Selection, node_id: str) -> bool:
    if node_id not in room.fleet.nodes:
        return who.whole
    return bool(reached(room, who, wanted, node_id))


@get("/holds", guards=SEE)
async def list_holds(room: TheRoom, who: Who, wanted: Wanted) -> Page[Hold]:
    """Holds, cordons and physical work that stand; a narrowed token sees those on what it reaches."""
    seen = None if who.whole else _scopes_within(room, who)
    return listed(((h.id, h) for h in room.fleet.holds.values() if seen is None or h.scope in seen), wanted)


def _scopes_within(room: AppState, who: Identity) -> frozenset[str]:
    """Every scope that a node within the caller's reach stands in."""
    scene, all_nodes = room.scene(), Selection(limit=1)
    ids = ids_for(room, who, all_nodes)
    nodes = (n for i in ids for n in reached(room, who, all_nodes, i))
    return frozenset(scope for node in nodes for scope in scopes(scene, node))


@get("/assets", guards=SEE_CELL)
async def list_assets(room: TheRoom, wanted: Wanted, kind: Name = "") -> Page[Asset]:
    """Assets that are no nodes: racks, NVLink domains, switch trays, power shelves, switches."""
    assets = room.fleet.assets

    def rows(asset_id: str) -> list[Asset]:
        asset = assets.get(asset_id)
        return [asset] if asset and kind in ("", asset.kind) and wanted.rack in ("", asset.position.rack) else []

    return paged(room.assets.of(assets), wanted, rows)


@get("/maintenance", guards=SEE)
async def maintenance(room: TheRoom, who: Who, wanted: Wanted, node: Name = "") -> Maintenance:
    """Windows, current and upcoming work, notices; for one node (`node=`) its repair history too (BFX02)."""
    fleet = room.fleet
    if node:
        return await _of_one(room, who, node)
    at_work = sorted(
        {i for key in ("planned", "waiting", "ailing") for i in fleet.index.members(key)} | _ticketed(fleet)
    )
    tickets: dict[str, list[Ticket]] = {}
    for ticket in fleet.tickets.values():
        tickets.setdefault(ticket.node, []).append(ticket)
    shown = partial(room.shown, who)
    page = paged(within_reach(room, who, at_work), wanted, lambda i: selected(room, who, wanted, i))
    work = tuple(row for n in page.items for row in work_of(fleet, n, shown(tickets.get(n.id, ()))))
    notices = tuple(row for n in page.items for row in notices_of(n))
    seen = None if who.whole else _scopes_within(room, who)
    windows = tuple(w for w in fleet.windows.values() if seen is None or w.scope in seen)
    return Maintenance(windows, work, (*notices, *_retired(room, who)), cursor=page.cursor)


def _ticketed(fleet: Fleet) -> set[str]:
    return {ticket.node for ticket in fleet.tickets.values() if ticket.node in fleet.nodes}


RETIRED_SHOWN = 100


def _retired(room: AppState, who: Identity) -> tuple[NoticeRow, ...]:
    """The latest retirements."""
    if not who.whole:
        return ()
    latest = sorted(room.fleet.retired.base.items(), key=lambda item: item[1], reverse=True)[:RETIRED_SHOWN]
    return tuple(NoticeRow(node_id, "", "retired", at) for node_id, at in latest)


async def _of_one(room: AppState, who: Identity, name: str) -> Maintenance:
    fleet = room.fleet
    records = await history(room, who, name, None, REPAIR_RECORDS)
    node = fleet.resolve(name)
    if node is not None and not sees(who, node):
        node = None
    repairs: list[WorkRow] = []
    for ticket in opened_tickets(records):
        closing = await asyncio.to_thread(room.cell.journal.history, ticket.id, None, 50)
        repairs.append(repair(node, ticket, room.shown(who, closing)))
    if node is None:
        return Maintenance((), (), (), tuple(repairs))
    feels = frozenset(scopes(room.scene(), node))
    windows = tuple(w for w in fleet.windows.values() if w.scope in feels)
    tickets = room.shown(who, tuple(t for t in fleet.tickets.values() if t.node == node.id))
    node = room.shown(who, node)
    return Maintenance(windows, tuple(work_of(fleet, node, tickets)), tuple(notices_of(node)), tuple(repairs))


router = Router(
    path="/",
    route_handlers=[
        list_conditions,
        list_plans,
        list_operations,
        list_waiting,
        list_shadows,
        list_parts,
        get_part,
        list_pools,
        get_pool,
        list_tickets,
        list_holds,
        list_assets,
        maintenance,
    ],
    tags=["lists"],
)
