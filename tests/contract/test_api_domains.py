"""Acts on whole domains over the API: asked for by any of a domain's names, shown with every member's blockers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.core.planning.domain_plans import DomainStage, acts
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import House, house


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


async def test_progress_and_blockers_of_all_members_are_in_one_place(world: House) -> None:
    await world.adopt(2)
    world.driver.works("n1", (Workload("job-7", "acme", WorkClass.uninterruptible),))
    status, body = await world.operator.post("/v1/racks/r0/drain", {"reason": "the manifold is replaced"})
    assert status == 200, body
    await world.until(lambda: [m for act in acts(world.cell.view) for m in act.members if m.stage is DomainStage.drain])
    await world.until(lambda: all(m.blockers for act in acts(world.cell.view) for m in act.members))
    (row,) = (await world.operator.get("/v1/domains"))["items"]
    assert (row["scope"], row["remedy"], row["nodes"]) == ("rack:r0", "drain", 2)
    assert row["reason"] == "the manifold is replaced"
    assert any("job-7" in text for text in row["waits_for"]), "whom all of it waits for, by name"
    one = await world.operator.get("/v1/domains/r0")
    assert one["scope"] == "rack:r0"
    assert one["nodes"] == ["n0", "n1"]
    assert [member["node"] for member in one["members"][row["id"]]] == ["n0", "n1"]
    assert all(member["blockers"] for member in one["members"][row["id"]])
    request = {"act": {"verb": "call-off"}, "target": "rack:r0", "reason": "next week"}
    assert (await world.operator.post("/v1/intents", request))[0] == 200
    await world.until(lambda: not acts(world.cell.view))
    assert (await world.operator.get("/v1/domains"))["items"] == []


async def test_a_domain_is_shown_as_far_as_one_sees_it_and_one_that_is_none_is_not_found(world: House) -> None:
    """Mutant: a tenant sees an act with another's members."""
    await world.adopt(1)
    await world.adopt(1, "beta", start=1)
    assert (await world.operator.post("/v1/racks/r0/reboot", {"reason": "r"}))[0] == 200
    acme = world.client(Grant("acme", Role.tenant, tenant="acme"))
    assert (await acme.get("/v1/domains"))["items"] == []
    assert (await acme.get("/v1/domains/r0"))["nodes"] == ["n0"]
    assert (await world.operator.call("GET", "/v1/domains/nowhere"))[0] == 404
    assert (await acme.post("/v1/intents", {"act": {"verb": "call-off"}, "target": "rack:r0", "reason": "r"}))[0] == 403
