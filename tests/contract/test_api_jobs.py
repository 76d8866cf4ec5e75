"""Customers' jobs over the API: what schedulers tell, grouped; each customer reads its own, and silence is said."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostler.controller.inputs import WorkSeen
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.server.tokens import Grant, Role
from tests.contract.api_world import XID79, Client, House, house

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
XID119 = XID79.replace(" 79,", " 119,")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as inside:
        yield inside


def work(name: str, tenant: str = "acme", kind: str = "uninterruptible", **more: Any) -> Workload:
    return Workload(name, tenant, WorkClass(kind), **more)


async def jobs(client: Client, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"/v1/jobs{query}"))["items"]
    return found


def waits_for(world: House, node: str) -> list[tuple[str, str]]:
    waiting = world.cell.view.nodes[node].waiting
    return [(blocker.kind, blocker.name) for blocker in waiting.blockers] if waiting else []


async def test_work_of_one_job_is_one_row_with_all_its_nodes(world: House) -> None:
    """Mutants: a row a node; infrastructure and idle checks count; the job is called as freely as its freest work."""
    await world.adopt(3)
    world.driver.works("n0", (
        work("acme/train-0:aa", job="acme/train", parts=("gpu0",), began=BEGAN, progress="half of it"),
        work("acme/exporter:bb", kind="infrastructure"),
    ))  # fmt: skip
    world.driver.works("n1", (work("acme/train-1:cc", job="acme/train", kind="graceful"),))
    world.driver.works("n2", (work("acme/notebook:dd", began=BEGAN), work("chk", "", "infrastructure", check="chk")))
    alone, train = await jobs(world.operator)
    assert (alone["id"], alone["nodes"]) == ("k-acme/acme/notebook:dd", ["n2"])
    assert alone["began"] == "2026-01-01T00:00:00Z"
    assert (train["id"], train["nodes"], train["gpus"]) == ("k-acme/acme/train", ["n0", "n1"], 3)
    assert (train["work_class"], train["pools"], train["began"]) == ("uninterruptible", ["alpha"], None)
    assert [(place["node"], place["gpus"], place["work"]) for place in train["places"]] == [
        ("n0", 1, "acme/train-0:aa"),
        ("n1", 2, "acme/train-1:cc"),
    ]


async def test_conditions_of_its_nodes_and_what_waits_for_its_end_are_told(world: House) -> None:
    """Mutants: a node that a hold keeps is said to wait for its job; conditions are those of the first node."""
    await world.adopt(2)
    for node in ("n0", "n1"):
        world.driver.works(node, (work(f"rank-{node}", job="train"), work(f"other-{node}")))
    assert {row["id"]: row["waiting"] for row in await jobs(world.operator)} == {
        "k-acme/other-n0": [],
        "k-acme/other-n1": [],
        "k-acme/train": [],
    }
    await world.report("n1", kind="kernel_log", text=XID119, facility=0)
    status, _ = await world.operator.post("/v1/nodes/n1/reboot", {"reason": "a kernel"})
    assert status == 200
    await world.until(lambda: world.cell.view.nodes["n1"].waiting)
    rows = {row["id"]: row for row in await jobs(world.operator)}
    train = rows["k-acme/train"]
    assert (train["ailing"], [one["node"] for one in train["waiting"]]) == (["n1"], ["n1"])
    assert "gpu.gsp_timeout" in train["conditions"]
    assert train["waiting"][0]["what"] in ("reboot", "power_cycle", "gpu_reset")
    assert rows["k-acme/other-n0"]["waiting"] == []
    for verb in ("hold", "reboot"):
        status, _ = await world.operator.post(f"/v1/nodes/n0/{verb}", {"reason": "somebody looks at it"})
        assert status == 200
    await world.until(lambda: world.cell.view.nodes["n0"].waiting)
    assert waits_for(world, "n0")[0][0] == "hold"
    (train,) = await jobs(world.operator, "?job=k-acme/train")
    assert [one["node"] for one in train["waiting"]] == ["n1"]
    world.driver.works("n1", (work("rank-n1", job="train"),))
    await world.until(lambda: waits_for(world, "n1") == [("workload", "rank-n1")])
    assert [one["node"] for one in (await jobs(world.operator, "?job=k-acme/train"))[0]["waiting"]] == ["n1"]


async def test_a_selector_takes_jobs_by_their_nodes_and_pages_lose_none(world: House) -> None:
    """Mutants: a job shows its selected nodes alone; the cursor repeats a job."""
    await world.adopt(5)
    for n in range(5):
        world.driver.works(f"n{n}", (work(f"solo-{n}"), work(f"rank-{n}", job="train")))
    assert [row["id"] for row in await jobs(world.operator, "?rack=r1")] == ["k-acme/solo-4", "k-acme/train"]
    (train,) = await jobs(world.operator, "?job=k-acme/train&selector=rack%3Dr1")
    assert train["nodes"] == ["n0", "n1", "n2", "n3", "n4"]
    assert await jobs(world.operator, "?job=k-acme/train&pool=beta") == []
    seen: list[str] = []
    page = await world.operator.get("/v1/jobs?limit=2")
    while True:
        seen += [row["id"] for row in page["items"]]
        if not page["cursor"]:
            break
        page = await world.operator.get(f"/v1/jobs?limit=2&cursor={page['cursor']}")
    assert seen == [*(f"k-acme/solo-{n}" for n in range(5)), "k-acme/train"]


async def test_a_tenant_reads_its_own_jobs_alone(world: House) -> None:
    """Mutants: whose a job is follows from the node's pool; another's job on one's own node is told of."""
    await world.adopt(2)
    await world.adopt(1, pool="beta", start=5)
    world.driver.works("n0", (work("mine", job="train"), work("theirs", "globex")))
    world.driver.works("n1", (work("nobodys", "", job="a job that is not shown"),))
    world.driver.works("n5", (work("elsewhere", "globex", job="train"),))
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    told = await tenant.get("/v1/jobs")
    assert [row["id"] for row in told["items"]] == ["k-acme/a-job-that-is-not-shown@n1", "k-acme/train"]
    assert "globex" not in str(told)
    assert await jobs(tenant, "?job=k-globex/train") == []
    assert len(await jobs(world.operator)) == 4
    narrowed = world.client(Grant("bob", Role.operator, pool="beta"))
    assert [row["id"] for row in await jobs(narrowed)] == ["k-globex/train"]


async def test_work_without_a_name_is_no_job_across_nodes(world: House) -> None:
    """Mutant: what two nodes hide is one job on both."""
    await world.adopt(2)
    for node in ("n0", "n1"):
        world.driver.works(node, (work("unseen", "", job="a job that Slurm does not show to us"),))
    assert [row["nodes"] for row in await jobs(world.operator)] == [["n0"], ["n1"]]


async def test_a_cluster_that_has_not_told_is_said_and_its_jobs_are_unknown(world: House) -> None:
    """Mutants: silence reads as no jobs; a tenant is told why, in words that may name others."""
    await world.adopt(2)
    world.driver.works("n0", (work("mine"),))
    assert (await world.operator.get("/v1/jobs"))["untold"] == []
    world.cell.tell(WorkSeen((), cluster="k-acme", lost="the API server does not answer"))
    await world.until(lambda: world.cell.live.clusters.get("k-acme"))
    told = await world.operator.get("/v1/jobs")
    assert (told["items"], told["untold"]) == (
        [],
        [{"cluster": "k-acme", "nodes": 2, "why": "the API server does not answer"}],
    )
    tenant = world.client(Grant("alice", Role.tenant, tenant="acme"))
    assert (await tenant.get("/v1/jobs"))["untold"] == [{"cluster": "k-acme", "nodes": 2, "why": ""}]
