"""The bring-up over HTTP and by command: who is on the way, beside the nodes that went before."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostler.core.report.burn_ins import running
from hostler.server.burn_in_times import BurnInTimes
from hostler.server.routes import bring_up as bring_up_routes
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import PATIENCE_S, House, bmc_of, house
from tests.contract.test_api_audit import cli

NEVER = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        await inside.adopt(1)
        yield inside


async def enrolled(world: House, *names: str) -> None:
    nodes = [{"id": n, "sku": "h100", "serial": f"SN-{n}", "rack": "r9", "u": 7, "bmc": bmc_of(n)} for n in names]
    assert (await world.operator.post("/v1/nodes", {"nodes": nodes, "reason": "new"}))[0] == 200
    await world.until(lambda: all(world.cell.view.nodes[n].phase == "onboard" for n in names))


async def through(world: House, name: str) -> None:
    await enrolled(world, name)
    await world.operator.post(f"/v1/nodes/{name}/certify", {"reason": "cabled"})
    await world.until(lambda: world.cell.view.nodes[name].phase == "production")


async def test_a_node_on_its_way_is_told_with_what_a_person_does_next(world: House) -> None:
    """Mutants: nodes in production are listed; the cohort of another stage."""
    await through(world, "m0")
    await enrolled(world, "m1")
    await world.until(lambda: world.cell.view.nodes["m1"].waiting)
    (row,) = (await world.operator.get("/v1/bring-up"))["items"]
    assert (row["node"], row["phase"], row["returns"], row["position"]["rack"]) == ("m1", "onboard", False, "r9")
    assert row["next_act"] == 'hostler node certify m1 --reason "…"'
    assert row["cohort"]["stays"] == 1
    assert "certif" in row["blockers"][0]
    text = await cli(world, "bring-up", "list")
    assert "m1" in text
    assert "hostler node certify m1" in text
    assert (await world.operator.get("/v1/bring-up", params={"phase": "test"}))["items"] == []
    assert (await world.operator.get("/v1/bring-up", params={"rack": "r9"}))["items"][0]["node"] == "m1"


async def test_stages_have_nodes_and_cohorts(world: House) -> None:
    """Mutants: an adoption counts as a bring-up; a rack's list shows the stages of all others."""
    await through(world, "m0")
    await enrolled(world, "m1")
    rows = (await world.operator.get("/v1/bring-up/stages"))["items"]
    by_stage = {row["phase"]: row for row in rows}
    assert list(by_stage) == ["registered", "initializing", "onboard", "seatrial", "zap", "test"]
    assert (by_stage["onboard"]["nodes"], by_stage["onboard"]["cohort"]["went_on"]) == (1, 1)
    assert by_stage["registered"]["cohort"]["stays"] == 2, "n0 was adopted"
    here = (await world.operator.get("/v1/bring-up/stages", params={"rack": "r9"}))["items"]
    assert [row["phase"] for row in here] == ["onboard"]
    assert "onboard" in await cli(world, "bring-up", "stages", "-l", "rack=r9")


async def test_the_agents_word_on_a_long_check_is_shown(world: House) -> None:
    """Mutant: an arrival is promised where nobody has arrived."""
    await enrolled(world, "m0")
    world.driver.stuck.add("run_checks")
    await world.operator.post("/v1/nodes/m0/certify", {"reason": "cabled"})
    await world.until(lambda: world.cell.view.nodes["m0"].phase == "seatrial")
    beat = {"node": "m0", "boot_id": world.cell.view.nodes["m0"].boot_id, "doing": "gemm: pass 3 of 40"}
    assert (await world.agent("m0").post("/v1/agent/heartbeat", beat))[0] < 300
    (row,) = (await world.operator.get("/v1/bring-up"))["items"]
    assert (row["doing"], row["returns"], row["arrives"]) == ("gemm: pass 3 of 40", False, None)


async def test_a_burn_in_is_told_beside_those_of_its_sku(world: House) -> None:
    """By API, command and page, also to a server that knows nothing but the journal. Without others it says so.

    Mutants: the node's own SKU's burn-ins are not found behind what its nodes did since; a tenant is told of others.
    """
    await enrolled(world, "m1")
    world.driver.stuck.add("burn_in")
    await world.operator.post("/v1/nodes/m1/certify", {"reason": "cabled"})
    await world.until(lambda: running(world.cell.view.nodes["m1"]))
    alone = (await world.operator.get("/v1/nodes/m1/explain"))["burn_in"]
    assert (alone["ended"], alone["ends"]) == (0, None)
    assert "no other h100 has ended a burn-in here" in await cli(world, "node", "explain", "m1")
    world.driver.stuck.clear()
    await through(world, "m0")
    world.driver.stuck.add("burn_in")
    fresh = BurnInTimes(world.cell)
    node = world.cell.view.nodes["m1"]
    beside = await fresh.standing(node, datetime.now(UTC))
    assert beside is not None
    assert (beside.ended, beside.passed, beside.sku) == (1, 1, "h100")
    assert beside.median_s is not None
    assert 0 < beside.median_s < PATIENCE_S
    assert running(node).started == beside.since  # type: ignore[union-attr]
    assert await fresh.standing(world.cell.view.nodes["m0"], NEVER) is None
    (row,) = [one for one in (await world.operator.get("/v1/bring-up"))["items"] if one["node"] == "m1"]
    assert row["burn_in"]["text"].startswith("burning in for ")
    assert "burning in for " in await cli(world, "node", "get", "m1")
    assert "burning in for " in await cli(world, "bring-up", "list", "-o", "wide")
    assert (await world.operator.get("/v1/nodes/m0"))["burn_in"] is None


async def test_of_many_moves_the_latest_tell(world: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a way whose begin was cut off counts with what is left of it."""
    await through(world, "m0")
    monkeypatch.setattr(bring_up_routes, "MOVES_MOST", 2)
    assert (await world.operator.get("/v1/bring-up/stages"))["items"] == []


async def test_only_who_sees_the_cell_reads_it(world: House) -> None:
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    for path in ("/v1/bring-up", "/v1/bring-up/stages"):
        assert (await tenant.call("GET", path))[0] == 403
