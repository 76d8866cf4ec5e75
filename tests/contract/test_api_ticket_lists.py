"""Lists of tickets by what they are about: a filter of nodes shows tickets of such nodes, and of no other thing."""

from datetime import UTC, datetime

import pytest

from hostler.core.state.cases import Ticket, WalkStop
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House
from tests.contract.test_api_audit import cli
from tests.contract.test_api_ticket_files import ticket_of
from tests.contract.test_api_ticket_files import world as one_ticket

world = one_ticket

NOW = datetime(2026, 3, 1, tzinfo=UTC)
STOP = WalkStop("f1", "r9", "u20", "swapped", ("swap them back",))
OTHERS = (
    Ticket("of-rack", "rack:r9", "rack_failed", "rack r9", NOW),
    Ticket("of-shelf", "shelf-9", "asset_fault", "a supply", NOW),
    Ticket("of-walk", "fabric:ib0", "walk", "two findings", NOW, walk=(STOP,)),
    Ticket("of-network", "fabric:ib0", "cabling", "a cable", NOW),
    Ticket("of-rack-8", "rack:r8", "rack_failed", "rack r8", NOW),
)
"""Tickets about no node."""
IN_R9 = {"of-rack", "of-shelf", "of-walk"}


async def more_tickets(world: House) -> str:
    """Adds those about no node; returns the one about node m0, in rack r9."""
    shelf = {"id": "shelf-9", "kind": "power_shelf", "rack": "r9", "serial": "PS-9"}
    assert (await world.operator.post("/v1/assets", {"assets": [shelf], "reason": "new"}))[0] == 200
    for ticket in OTHERS:
        world.cell.view.put_ticket(ticket.id, ticket)
    world.cell.view.merge()
    return ticket_of(world)


async def ids(world: House, query: str) -> set[str]:
    return {row["id"] for row in (await world.operator.get(f"/v1/tickets?{query}"))["items"]}


@pytest.mark.parametrize(
    "query",
    [
        "node=m0", "node=SN-m0", "sku=h100", "q=m0", "selector=node=m0", "phase=debug,rma,triage,onboard",
        "selector=sku=h100,rack=r9", "selector=pool!=train", "selector=rack=r9,phase!=zap", "rack=r9&sku=h100",
    ],
)  # fmt: skip
async def test_a_filter_of_nodes_shows_tickets_of_such_nodes_alone(world: House, query: str) -> None:
    """Mutants: what is about no node passes every filter; a serial number finds no node; one term is passed over."""
    own = await more_tickets(world)
    query = query.replace("phase=debug,rma,triage,onboard", f"phase={world.cell.view.nodes['m0'].phase}")
    assert await ids(world, query) == {own}
    assert await ids(world, "") == {own, *(ticket.id for ticket in OTHERS)}


async def test_a_rack_shows_the_tickets_of_what_stands_in_it(world: House) -> None:
    """Mutants: a walk, shelf or rack of another one is shown; a technician at the rack misses one of them."""
    own = await more_tickets(world)
    for query in ("rack=r9", "selector=rack=r9", "selector=rack in (r9,r7)", "rack=r9&selector=rack!=r8"):
        assert await ids(world, query) == {own, *IN_R9}, query
    assert await ids(world, "rack=r8") == {"of-rack-8"}
    assert await ids(world, "selector=rack!=r9") == {"of-network", "of-rack-8"}
    assert await ids(world, "rack=r9&selector=rack!=r9") == set()
    assert await ids(world, "node=rack:r9") == {"of-rack"}
    narrow = world.client(Grant("tim", Role.technician, site="north"))
    assert {row["id"] for row in (await narrow.get("/v1/tickets?rack=r9"))["items"]} == {own}


async def test_the_command_shows_the_same(world: House) -> None:
    own = await more_tickets(world)
    for words, found in (
        (("--node", "SN-m0"), {own}),
        (("-l", "sku=h100"), {own}),
        (("-l", "rack=r9"), {own, *IN_R9}),
    ):
        assert set((await cli(world, "ticket", "list", *words, "-o", "name")).split()) == found, words
