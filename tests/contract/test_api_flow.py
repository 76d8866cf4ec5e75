"""The flow over HTTP and by command: what the journal has of moves, against how the fleet stands now."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.server.routes import flow as flow_routes
from tests.contract.api_world import House, house
from tests.contract.test_api_audit import cli


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(3)
        yield inside


async def test_the_flow_ends_with_the_fleet_as_it_stands(world: House) -> None:
    """Mutants: the moves of the whole fleet for one rack; retired nodes are forgotten."""
    await world.adopt(2, "beta", start=8)
    found = await world.operator.get("/v1/flow")
    assert found["points"][0]["counts"] == {}, "nothing was known a day ago"
    assert found["points"][-1]["counts"] == {"production": 5}
    assert {(e["before"], e["after"]): e["moves"] for e in found["edges"]}["registered", "production"] == 5
    assert not found["partial"]
    of_pool = await world.operator.get("/v1/flow", params={"pool": "beta", "span": "1h"})
    assert of_pool["points"][-1]["counts"] == {"production": 2}
    production = next(one for one in of_pool["times"] if one["phase"] == "production")
    assert (production["entered"], production["nodes"], production["limit_s"]) == (2, 2, None)
    nobody = await world.operator.get("/v1/flow", params={"rack": "r77"})
    assert nobody["edges"] == []


async def test_of_too_many_moves_the_latest_are_told_and_it_is_said(
    world: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: counts from before what was read."""
    monkeypatch.setattr(flow_routes, "MOVES_MOST", 2)
    found = await world.operator.get("/v1/flow")
    assert found["partial"]
    assert sum(edge["moves"] for edge in found["edges"]) == 2


async def test_the_command_prints_the_times_and_refuses_another_span(world: House) -> None:
    text = await cli(world, "flow", "--span", "7d", "--pool", "alpha")
    row = next(line for line in text.splitlines() if line.startswith("production"))
    assert row.split()[1:4] == ["3", "3", "0"]
    status, _ = await world.operator.call("GET", "/v1/flow", params={"span": "99y"})
    assert status == 400
