"""Acts that rules in shadow would have done, over HTTP: counted, explained, and seen by their tenants only."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.server.tokens import Grant, Role
from tests.contract.api_world import DOCUMENTS, XID79, House, house

SHADOWED = DOCUMENTS["policy.yaml"].replace(
    "gpu.fallen_off_bus: {remedy: power_cycle,", "gpu.fallen_off_bus: {shadow: true, remedy: power_cycle,"
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        body = {"documents": {**DOCUMENTS, "policy.yaml": SHADOWED}, "reason": "on trial first"}
        status, answer = await inside.operator.post("/v1/config", body)
        assert status == 200, answer
        await inside.adopt(1)
        await inside.adopt(1, "beta", start=1)
        yield inside


async def test_a_rule_in_shadow_is_listed_and_explained_and_does_nothing(world: House) -> None:
    for node in ("n0", "n1"):
        await world.report(node, kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: world.cell.view.nodes["n1"].shadows)
    rows = (await world.operator.get("/v1/shadows"))["items"]
    assert [(row["node"], row["rule"], row["remedy"], row["times"]) for row in rows] == [
        ("n0", "gpu.fallen_off_bus", "power_cycle", 1),
        ("n1", "gpu.fallen_off_bus", "power_cycle", 1),
    ]
    assert (await world.operator.get("/v1/plans"))["items"] == []
    explained = await world.operator.get("/v1/nodes/n0/explain")
    told = [text for chain in explained["chains"] for link in chain["conditions"] for text in link["shadows"]]
    assert [text.partition(" (")[0] for text in told] == [
        "shadow rule gpu.fallen_off_bus would have started power_cycle"
    ]


async def test_a_tenant_sees_its_own_nodes_only(world: House) -> None:
    for node in ("n0", "n1"):
        await world.report(node, kind="kernel_log", text=XID79, facility=0)
    await world.until(lambda: world.cell.view.nodes["n1"].shadows)
    tenant = world.client(Grant("gil", Role.tenant, tenant="globex"))
    assert [row["node"] for row in (await tenant.get("/v1/shadows"))["items"]] == ["n1"]
