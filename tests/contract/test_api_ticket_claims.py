"""Claims of tickets over HTTP and by command: lists by whose they are, shift leads, and what a customer reads."""

import re

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import Client, House
from tests.contract.test_api_audit import cli
from tests.contract.test_api_ticket_files import ticket_of
from tests.contract.test_api_ticket_files import world as one_ticket

world = one_ticket


async def asked(client: Client, verb: str, ticket: str, **args: object) -> tuple[int, str]:
    status, body = await client.post(
        "/v1/intents", {"act": {"verb": verb, **args}, "target": ticket, "reason": "shift"}
    )
    return status, body.get("detail") if status >= 400 else body["text"]


async def ids(client: Client, claim: str = "") -> list[str]:
    return [row["id"] for row in (await client.get(f"/v1/tickets{claim and '?claim=' + claim}"))["items"]]


async def test_tickets_are_listed_by_whose_they_are(world: House) -> None:
    """Mutants: mine are everybody's; what is claimed is still nobody's."""
    tess, tom = (world.client(Grant(name, Role.technician)) for name in ("tess", "tom"))
    ticket = ticket_of(world)
    assert (await ids(tess, "nobody"), await ids(tess, "mine")) == ([ticket], [])
    assert (await asked(tess, "claim-ticket", ticket))[0] == 200
    assert (await ids(tess, "nobody"), await ids(tess, "mine"), await ids(tom, "mine")) == ([], [ticket], [])
    assert await ids(tom) == [ticket]
    status, why = await asked(tom, "claim-ticket", ticket)
    assert (status, "tess has ticket" in why) == (409, True)
    assert (await tess.call("GET", "/v1/tickets?claim=others"))[0] == 400


async def test_only_an_operator_is_a_shift_lead(world: House) -> None:
    """Mutant: a technician takes another's ticket by a flag."""
    tess, tom = (world.client(Grant(name, Role.technician)) for name in ("tess", "tom"))
    ticket = ticket_of(world)
    assert (await asked(tess, "claim-ticket", ticket))[0] == 200
    assert (await asked(tom, "hand-over-ticket", ticket, shift_lead=True))[0] == 403
    assert (await asked(world.operator, "hand-over-ticket", ticket, to="tom", shift_lead=True))[0] == 200
    assert await ids(tom, "mine") == [ticket]
    history = await world.operator.get("/v1/nodes/m0/history")
    assert any("handed over to tom by" in row["text"] for row in history["items"])


async def test_a_ticket_is_handed_over_to_a_known_person_who_may_work_on_it(world: House) -> None:
    """Mutants: any name will do; a viewer, a customer, an agent or a token of another site counts as a colleague."""
    tess = world.client(Grant("tess", Role.technician))
    world.client(Grant("tom", Role.technician, site="north"))
    world.client(Grant("tim", Role.technician, site="south"))
    world.client(Grant("vera", Role.viewer))
    world.client(Grant("pat", Role.tenant, tenant="acme"))
    world.client(Grant("agent-m0", Role.agent, node="m0"))
    ticket = ticket_of(world)
    assert (await asked(tess, "claim-ticket", ticket))[0] == 200
    for name in ("tmo", "Tom", "tim", "vera", "pat", "agent-m0"):
        for dry_run in (True, False):
            act = {"verb": "hand-over-ticket", "to": name}
            sent = {"act": act, "target": ticket, "reason": "shift", "dry_run": dry_run}
            status, body = await tess.post("/v1/intents", sent)
            assert (status, body["detail"]) == (
                422,
                f"'{name}' may not take ticket {ticket}: no such colleague is known",
            )
            assert body["instead"].startswith("did you mean tom? " if name in ("tmo", "Tom", "tim") else "name one of ")
            assert not {"tim", "vera", "pat", "agent-m0"} & set(re.findall(r"[\w-]+", body["instead"]))
    assert await ids(tess, "mine") == [ticket]
    assert (await asked(tess, "hand-over-ticket", ticket, to="tom"))[0] == 200
    assert (await tess.get(f"/v1/tickets/{ticket}/people")) == [
        {"name": "ada", "role": "operator"},
        {"name": "tess", "role": "technician"},
        {"name": "tom", "role": "technician"},
    ]
    assert (await tess.call("GET", "/v1/tickets/none/people"))[0] == 404
    assert (await world.client(Grant("vera", Role.viewer)).call("GET", f"/v1/tickets/{ticket}/people"))[0] == 403
    assert (
        await world.client(Grant("tim", Role.technician, site="south")).call("GET", f"/v1/tickets/{ticket}/people")
    )[0] == 404


async def test_a_technicians_token_switches_off_what_its_person_has_claimed(world: House) -> None:
    """Mutants: the role is not looked at; an argument or another route goes round it; the dry run says otherwise."""
    tess, tom = (world.client(Grant(name, Role.technician, site="north")) for name in ("tess", "tom"))
    ticket = ticket_of(world)
    claim = f"claim it first (hostler ticket claim {ticket} --reason …)"
    why = f"you have claimed no ticket about m0 and begun no work on it: {claim}"
    for dry_run in (True, False):
        sent = {"reason": "fans", "dry_run": dry_run}
        status, body = await tess.post("/v1/nodes/m0/power-off", sent)
        assert (status, body["detail"]) == (409, why)
        status, body = await tess.post(
            "/v1/intents", {"act": {"verb": "power-off"}, "target": "nodes", "nodes": ["m0"], **sent}
        )
        assert (status, body["detail"]) == (409, why)
    for word in ("shift_lead", "own_work"):
        status, text = await asked(tess, "power-off", "m0", **{word: "false"})
        assert status >= 400, text
    assert (await asked(tess, "claim-ticket", ticket))[0] == 200
    assert (await asked(tom, "power-off", "m0"))[0] == 409
    assert (await asked(world.operator, "power-off", "m0"))[0] == 200
    assert (await asked(tess, "power-off", "m0"))[0] == 200


async def test_commands_claim_hand_over_and_list(world: House) -> None:
    ticket = ticket_of(world)
    world.client(Grant("tom", Role.technician))
    await cli(world, "ticket", "claim", ticket, "--reason", "my shift")
    assert ticket in await cli(world, "ticket", "list", "--claim", "mine", "-o", "name")
    assert ticket not in await cli(world, "ticket", "list", "--claim", "nobody", "-o", "name")
    await cli(world, "ticket", "hand-over", ticket, "--to", "tom", "--reason", "end of my shift")
    assert world.cell.view.tickets[ticket].claimed_by == "tom"
