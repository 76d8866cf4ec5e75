"""Incidents and the storm brake on every surface of the API, and whose nodes whom they show."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, PATIENCE_S, POLICY, XID79, Client, House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def dark_rack(world: House) -> dict[str, Any]:
    """Two nodes of acme and two of globex in one rack are off, though they should serve."""
    await world.adopt(2)
    await world.adopt(2, "beta", start=2)
    for n in range(4):
        await world.report(f"n{n}", kind="power", facts={"power": "off"})
    (row,) = (await world.operator.get("/v1/incidents"))["items"]
    return dict(row)


def tenant(world: House, name: str) -> Client:
    return world.client(Grant(name, Role.tenant, tenant=name))


async def test_a_dark_rack_is_one_incident_everywhere(world: House) -> None:
    """List, one, status, metrics, tickets, waits, explain."""
    row = await dark_rack(world)
    assert (row["scope"], row["blames"], row["nodes"], row["size"]) == ("rack:r0", "rack r0", 4, 4)
    assert row["first"] == ["n0", "n1", "n2", "n3"]
    assert (await world.operator.get("/v1/status"))["incidents"] == [row]
    one = await world.operator.get(f"/v1/incidents/{row['id']}")
    assert sorted(one["members"]) == ["n0", "n1", "n2", "n3"]
    assert one["history"][-1]["name"] == "incident_opened"
    (ticket,) = (await world.operator.get("/v1/tickets"))["items"]
    assert (ticket["id"], ticket["kind"], ticket["node"]) == (row["ticket"], "incident", "rack:r0")
    metrics = await world.operator.get("/metrics")
    assert 'hostler_incidents{kind="rack"} 1.0' in metrics
    assert "hostler_incident_nodes 4.0" in metrics
    explained = await world.operator.get("/v1/nodes/n0/explain")
    assert row["id"] in explained["waiting"]["blockers"][0]["text"]
    assert any(row["id"] in note["text"] for note in explained["notes"])


async def test_a_person_closes_it_and_its_history_stays(world: House) -> None:
    row = await dark_rack(world)
    request = {"act": {"verb": "close-incident"}, "target": row["id"], "reason": "the feed is back"}
    status, body = await tenant(world, "acme").post("/v1/intents", request)
    assert status == 403, body
    status, body = await world.operator.post("/v1/intents", request)
    assert status == 200, body
    assert (await world.operator.get("/v1/incidents"))["items"] == []
    assert (await world.operator.get("/v1/tickets"))["items"] == []
    one = await world.operator.get(f"/v1/incidents/{row['id']}")
    assert one["incident"] is None
    assert "closed by ada: the feed is back" in one["history"][0]["text"]
    assert (await world.operator.call("GET", "/v1/incidents/i999999"))[0] == 404


async def test_a_tenant_sees_its_own_nodes_in_it_and_nobody_elses(world: House) -> None:
    """Mutants: the whole incident is shown; history or stream name the neighbour's nodes."""
    row = await dark_rack(world)
    acme = tenant(world, "acme")
    (own,) = (await acme.get("/v1/incidents"))["items"]
    assert (own["id"], own["nodes"], own["first"]) == (row["id"], 2, ["n0", "n1"])
    shown = [
        await acme.get("/v1/incidents"),
        await acme.get(f"/v1/incidents/{row['id']}"),
        await acme.get("/v1/status"),
        await acme.get("/v1/nodes/n0/history"),
        await acme.get("/v1/nodes/n0/explain"),
        await acme.get("/v1/nodes/n0"),
    ]
    told = json.dumps(shown)
    assert row["id"] in told
    for foreign in ('"n2"', '"n3"', "globex", "beta"):
        assert foreign not in told
    stranger = tenant(world, "umbrella")
    assert (await stranger.get("/v1/incidents"))["items"] == []
    assert (await stranger.call("GET", f"/v1/incidents/{row['id']}"))[0] == 404


async def events_of(client: Client, named: str) -> dict[str, Any]:
    """The first event of this name on the client's stream, from the beginning on."""
    headers = {"Authorization": f"Bearer {client.token}", "Last-Event-ID": "1"}
    async with asyncio.timeout(PATIENCE_S), client.session.get(f"{client.url}/v1/events", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data: ") and (found := json.loads(line[6:]))["name"] == named:
                return dict(found)
    raise AssertionError(named)


async def test_the_stream_of_a_tenant_names_its_own_nodes_only(world: House) -> None:
    await dark_rack(world)
    opened = await events_of(tenant(world, "acme"), "incident_opened")
    assert list(opened["event"]["incident"]["members"]) == ["n0", "n1"]
    assert "n2" not in opened["subjects"]


async def test_a_latched_brake_shows_on_every_surface(world: House) -> None:
    """Status, answers to whatever is asked, granted or refused, blockers, metrics, and every caller's stream."""
    await world.adopt(3)
    tight = POLICY.replace("brake: {disruptions: 20, percent: 2,", "brake: {disruptions: 0, percent: 0,")
    assert tight != POLICY
    body = {"documents": {**DOCUMENTS, "policy.yaml": tight}, "reason": "a nervous one"}
    assert (await world.operator.post("/v1/config", body))[0] == 200
    await world.report("n0", kind="kernel_log", text=XID79, facility=0)
    reason = (await world.operator.get("/v1/status"))["brake"]
    assert "1 disruptions within 1 h" in reason
    acme = tenant(world, "acme")
    assert (await acme.get("/v1/status"))["brake"] == reason
    status, answer = await acme.post("/v1/nodes/n1/cordon", {"reason": "mine"})
    assert (status, answer["detail"]["brake"]) == (200, reason)
    status, answer = await world.operator.post("/v1/nodes/n1/approve", {"reason": "nothing is proposed"})
    assert (status, answer["facts"]["brake"]) == (409, reason)
    explained = await acme.get("/v1/nodes/n0/explain")
    assert any(reason in b["text"] for b in explained["waiting"]["blockers"])
    assert "hostler_brake_latched 1.0" in await world.operator.get("/metrics")
    assert (await events_of(acme, "brake_latched"))["event"]["reason"] == reason
