"""Lists: conditions, plans, operations, waits, pools, tickets, holds, assets."""

import asyncio
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeVar

from litestar import Router, get
from litestar.params import FromPath, FromQuery

from hostler.client.answers import ConditionRow, OperationRow, OutsideRow, PoolView, ShadowRow, TicketRow, WaitingRow
from hostler.core.policy import pool_places
from hostler.core.state.assets import Asset
from hostler.core.state.cases import Ticket
from hostler.core.state.fleet import Fleet
from hostler.core.state.light import Light
from hostler.core.state.model import Hold, Node, Plan
from hostler.core.state.notify_routes import TOLD_EACH
from hostler.core.state.scopes import RACK, Scope
from hostler.core.state.verbs.facts import Permission
from hostler.ports import JournalError
from hostler.server.api_resources import shadow_rows, ticket_row, waiting_row
from hostler.server.app_state import AppState
from hostler.server.auth import SEE, SEE_CELL, may
from hostler.server.dependencies import TheAppState, Wanted, Who
from hostler.server.fleet_status import own_pools, pool_view
from hostler.server.node_reach import reached, scopes_within, selected, within_reach
from hostler.server.paging import Name, Page, Selection, listed, paged
from hostler.server.problems import unknown
from hostler.server.tokens import Identity, Role


class Claimed(StrEnum):
    """Claims that a list of tickets is asked for by."""

    mine = "mine"
    nobody = "nobody"


T = TypeVar("T")


def _by_index(
    app_state: AppState, who: Identity, wanted: Selection, key: str, items: Callable[[Node], Iterable[T]]
) -> Page[T]:
    """A page of what the nodes under one index entry give."""
    return paged(
        within_reach(app_state, who, app_state.fleet.index.members(key)),
        wanted,
        lambda i: [item for node in selected(app_state, who, wanted, i) for item in items(node)],
    )


@get("/conditions", guards=SEE)
async def list_conditions(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[ConditionRow]:
    """Conditions that stand, by node."""

    def rows(node: Node) -> list[ConditionRow]:
        plan, rack = node.plan.name if node.plan else "", node.position.rack
        return [
            ConditionRow(c, node.phase, node.pool, rack, plan)
            for c in node.conditions
            if wanted.takes_condition(c.type)
        ]

    return _by_index(app_state, who, wanted, "ailing", rows)


@get("/plans", guards=SEE)
async def list_plans(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[Plan]:
    """Plans that are proposed, running or being taken back."""
    return _by_index(app_state, who, wanted, "planned", lambda node: (node.plan,) if node.plan else ())


@get("/operations", guards=SEE)
async def list_operations(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[OperationRow]:
    """Operations under way, and those given up that may still land."""

    def rows(node: Node) -> list[OperationRow]:
        operations = (*node.under_way, *node.settling)
        return [OperationRow(o, node.plan.name if node.plan and o.plan else "", node.pool) for o in operations]

    return _by_index(app_state, who, wanted, "operating", rows)


@get("/shadows", guards=SEE)
async def list_shadows(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[ShadowRow]:
    """Effects that shadow rules would have had, by node."""
    return _by_index(app_state, who, wanted, "shadowed", shadow_rows)


@get("/waiting", guards=SEE)
async def list_waiting(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[WaitingRow]:
    """Nodes that wait, since when, for what, and the GPU-hours that this took so far."""
    now = app_state.now()
    return _by_index(app_state, who, wanted, "waiting", lambda node: (waiting_row(app_state.fleet, node, now),))


@get("/pools", guards=SEE)
async def list_pools(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[PoolView]:
    """Pools with their counts."""
    pools = {pool.name: pool for pool in own_pools(app_state.fleet, who)}
    page = listed(((name, pool) for name, pool in pools.items() if wanted.sku in ("", pool.sku)), wanted)
    dark = pool_places.dark(app_state.context())
    told = who.role is not Role.tenant
    return page.of(pool_view(app_state.cell, pool, dark, reasons=told) for pool in page.items)


@get("/pools/{name:str}", guards=SEE)
async def get_pool(app_state: TheAppState, who: Who, name: FromPath[str]) -> PoolView:
    """One pool with its counts."""
    found = next((pool for pool in own_pools(app_state.fleet, who) if pool.name == name), None)
    if found is None:
        raise unknown("pool", name)
    dark = pool_places.dark(app_state.context())
    return pool_view(app_state.cell, found, dark, reasons=who.role is not Role.tenant)


@get("/tickets", guards=SEE)
async def list_tickets(
    app_state: TheAppState, who: Who, wanted: Wanted, node: Name = "", claim: FromQuery[Claimed | None] = None
) -> Page[TicketRow]:
    """Open tickets; closed ones stand in the repair history (GET /v1/maintenance?node=…).

    `claim`: the caller's own (mine), or those that nobody has, or whose claim has lapsed with its shift (nobody). What
    selects nodes selects tickets about such nodes; one about a rack, or what stands in it, is selected by `rack` too.
    """
    known = app_state.fleet.resolve(node)
    name = node if known is None else known.id
    found = ((t.id, t) for t in app_state.fleet.tickets.values() if name in ("", t.node))
    if claim is not None:
        found = ((name, t) for name, t in found if _claimed(app_state, who, t) is claim)
    page = listed(((key, t) for key, t in found if _concerns(app_state, who, wanted, t)), wanted)
    outside = await _outside(app_state) if may(who, Permission.see_cell) else {}
    lights = {t.id: _light(app_state, t) for t in page.items} if who.role is not Role.tenant else {}
    rows = tuple(ticket_row(t, outside.get(t.id, ()), lights.get(t.id)) for t in app_state.shown(who, page.items))
    return page.of(rows)


def _claimed(app_state: AppState, who: Identity, ticket: Ticket) -> Claimed | None:
    """The claim on the ticket, as the caller is shown it; None where another has it."""
    (shown,) = app_state.shown(who, (ticket,))
    holder = shown.holder(app_state.now())
    return Claimed.nobody if not holder else Claimed.mine if holder == who.name else None


def _light(app_state: AppState, ticket: Ticket) -> Light | None:
    node = app_state.fleet.nodes.get(ticket.node)
    return node.light if node is not None else None


async def _outside(app_state: AppState) -> dict[str, tuple[OutsideRow, ...]]:
    """Hostler's tickets in ticket systems; none where the outbox does not answer just now."""
    log, found = app_state.outside.notifications, dict[str, tuple[OutsideRow, ...]]()
    routes = app_state.fleet.configuration.routes
    if log is None or not any(route.kind in TOLD_EACH for route in routes.values()):
        return found
    try:
        links = await asyncio.to_thread(log.outbox.links.links)
    except JournalError:
        return found
    for link in links:
        if link.key and link.route in routes:
            row = OutsideRow(link.route, link.key, link.url, link.done)
            found[link.ticket] = (*found.get(link.ticket, ()), row)
    return found


def _concerns(app_state: AppState, who: Identity, wanted: Selection, ticket: Ticket) -> bool:
    if ticket.node not in app_state.fleet.nodes:
        return who.whole and wanted.takes_racks(_racks(app_state.fleet, ticket))
    return bool(reached(app_state, who, wanted, ticket.node))


def _racks(fleet: Fleet, ticket: Ticket) -> set[str]:
    """Racks to which a ticket about no node sends a person."""
    about, asset = Scope.of(ticket.node), fleet.assets.get(ticket.node)
    racks = {stop.rack for stop in ticket.walk}
    racks |= {about.name} if about.kind == RACK else set()
    return racks | ({asset.position.rack} if asset is not None else set())


@get("/holds", guards=SEE)
async def list_holds(app_state: TheAppState, who: Who, wanted: Wanted) -> Page[Hold]:
    """Holds, cordons and physical work that stand; a narrowed token sees those on what it reaches."""
    seen = None if who.whole else scopes_within(app_state, who)
    return listed(((h.id, h) for h in app_state.fleet.holds.values() if seen is None or h.scope in seen), wanted)


@get("/assets", guards=SEE_CELL)
async def list_assets(app_state: TheAppState, wanted: Wanted, kind: Name = "") -> Page[Asset]:
    """Assets that are no nodes: racks, NVLink domains, switch trays, power shelves, switches."""
    assets = app_state.fleet.assets

    def rows(asset_id: str) -> list[Asset]:
        asset = assets.get(asset_id)
        return [asset] if asset and kind in ("", asset.kind) and wanted.rack in ("", asset.position.rack) else []

    return paged(app_state.assets.of(assets), wanted, rows)


router = Router(
    path="/",
    route_handlers=[
        list_conditions,
        list_plans,
        list_operations,
        list_waiting,
        list_shadows,
        list_pools,
        get_pool,
        list_tickets,
        list_holds,
        list_assets,
    ],
    tags=["lists"],
)
