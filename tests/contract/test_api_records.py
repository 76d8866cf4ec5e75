"""Records by pages over HTTP and by command: from either end, between moments, of a node and a name, within reach."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hostler.server.routes import records
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import Client, House, house
from tests.contract.test_api_audit import cli


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.reads_all()
        await inside.adopt(3)
        for turn in range(6):
            await inside.operator.post(f"/v1/nodes/n{turn % 2}/cordon", {"reason": f"turn {turn}"})
        yield inside


async def read(client: Client, query: str = "", limit: int = 7) -> list[dict[str, Any]]:
    """Every record, page by page; no page is longer than was asked for."""
    found: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(10_000):
        page = await client.get(
            f"/v1/records?limit={limit}&cursor={cursor}{query}" if cursor else f"/v1/records?limit={limit}{query}"
        )
        assert len(page["items"]) <= limit
        found += page["items"]
        cursor = page["cursor"]
        if not cursor:
            return found
    raise AssertionError("it never ends")


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [one["seq"] for one in found]


@pytest.mark.parametrize("looked", [3, 5, 20_000])
async def test_every_record_comes_once_from_either_end(
    world: House, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: the cursor's record comes twice, or never; a page that finds nothing is the last."""
    monkeypatch.setattr(records, "LOOKED_MAX", looked)
    all_of = [record.seq for record in world.cell.journal.records()]
    assert len(all_of) > 20
    assert numbers(await read(world.operator, "&order=oldest")) == all_of
    assert numbers(await read(world.operator)) == all_of[::-1]
    cordons = numbers(await read(world.operator, "&name=intent_"))
    assert (
        cordons
        == [r.seq for r in world.cell.journal.records() if r.event.__struct_config__.tag == "intent_recorded"][::-1]
    )
    of_node = numbers(await read(world.operator, "&node=n1&order=oldest", limit=2))
    assert of_node == [r.seq for r in reversed(world.cell.journal.history("n1", None, 1000))]


async def test_records_lie_between_two_moments(world: House) -> None:
    """Mutants: the last moment is within; a moment before all, or after all, is none."""
    every = list(world.cell.journal.records())
    first, last = every[5].at, every[-1].at
    among = [r.seq for r in every if first <= r.at < last]
    between = f"&since={first.isoformat().replace('+00:00', 'Z')}&until={last.isoformat().replace('+00:00', 'Z')}"
    assert numbers(await read(world.operator, between)) == among[::-1]
    assert numbers(await read(world.operator, f"{between}&order=oldest")) == among
    late = (last + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    assert await read(world.operator, f"&since={late}") == []
    assert len(await read(world.operator, f"&until={late}")) == len(every)
    early = (every[0].at - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    assert await read(world.operator, f"&until={early}&order=oldest") == []


@pytest.mark.parametrize(
    "query", ["since=2026-01-01", "cursor=-1", "cursor=x", "order=random", "limit=0", "limit=1001", "nodes=n1"]
)
async def test_a_question_that_is_none_is_refused(world: House, query: str) -> None:
    assert (await world.operator.call("GET", f"/v1/records?{query}"))[0] == 400


async def test_a_customer_reads_of_its_own_nodes_alone(world: House) -> None:
    """Mutant: the list does not go through what the stream of events goes through."""
    acme = world.client(Grant("ann", Role.tenant, tenant="acme"))
    own = {node.id for node in world.cell.view.nodes.values() if node.assignment and node.assignment.tenant == "acme"}
    found = await read(acme)
    assert found
    assert {subject for one in found for subject in one["subjects"] if subject.startswith("n")} <= own
    other = next(iter(set(world.cell.view.nodes) - own), "")
    assert (await acme.call("GET", f"/v1/records?node={other or 'nobody'}"))[0] == 404


async def test_the_command_pages_through_a_history_longer_than_a_page(world: House) -> None:
    """Mutants: only the last page is read; the oldest of the last ones comes last."""
    for turn in range(600):
        await world.operator.post("/v1/nodes/n2/cordon", {"reason": f"turn {turn}"})
    every = [record.seq for record in world.cell.journal.records()]
    assert len(every) > 600, "more than a page of the client"
    told = [json.loads(line)["seq"] for line in (await cli(world, "events", "--limit", "0", "-o", "json")).splitlines()]
    assert told == every
    last = [
        json.loads(line)["seq"] for line in (await cli(world, "events", "--limit", "600", "-o", "jsonl")).splitlines()
    ]
    assert last == every[-600:]
