"""Complaints of people about other projects, row by row, tried on a real Kubernetes beside one served cell.

Each row has a pool and nodes of its own, so that none disturbs another's; rows that stop the cell or latch the brake
come last.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from hostler.sim.emulated.emulated_server import Trouble, gpu_address
from tests.contract.kubernetes_world import Admin, an_admin, let_go, until
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.clustered import PATIENCE_S, SKUS, Clustered, clustered, policy
from tests.end_to_end.processes import HOSTLER, run

pytestmark = [
    pytest.mark.nightly("a real control plane runs beside it"),
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.asyncio(loop_scope="module"),
]
SPACE = "acme"
ACT = 'modes: {"*": act}'
ONE = "budget: {count: 1, percent: 100}"
ROWS = {
    "others": (1, f"{ACT}, {ONE}"),
    "admins": (1, f"{ACT}, {ONE}"),
    "override": (1, f"{ACT}, {ONE}"),
    "vanished": (2, f"{ACT}, budget: {{count: 2, percent: 100}}"),
    "deadline": (1, f"{ACT}, {ONE}"),
    "failed": (1, f"{ACT}, {ONE}, drain_deadline_s: 3, owner: research"),
    "small": (3, f"{ACT}, budget: {{count: 1, percent: 20}}"),
    "guarded": (1, f"{ACT}, {ONE}, drain_deadline_s: 5, owner: research"),
    "paused": (1, f"{ACT}, {ONE}"),
    "stale": (1, f"{ONE}"),
    "repair": (2, f"{ACT}, {ONE}"),
    "loops": (1, f"{ACT}, {ONE}"),
    "restarted": (1, f"{ONE}"),
    "cold": (1, f"{ACT}, {ONE}"),
    "storm": (9, f"{ACT}, budget: {{count: 9, percent: 100}}"),
}
"""Row → how many nodes, and what its pool says."""

POOLS = "".join(
    f"  {row}: {{sku: h100, target: {count}, tenant: acme, cluster: k1, {says}}}\n"
    for row, (count, says) in ROWS.items()
)
XID79 = f"NVRM: Xid (PCI:{gpu_address(3)}): 79, pid=1234, name=python3, GPU has fallen off the bus."
XID45 = f"NVRM: Xid (PCI:{gpu_address(3)}): 45, pid=1234, name=python3, Ch 00000010"
XID95 = f"NVRM: Xid (PCI:{gpu_address(3)}): 95, pid=1234, name=python3, Uncontained ECC error."
DONE = ("done", "")
QUIET, STORMY = (f"{{disruptions: {limit}, percent: 1, window_s: 3600}}" for limit in (90, 3))
"""The brake, for the rows before the last one and for that."""


def names(row: str) -> list[str]:
    return [f"{row}-{number}" for number in range(1, ROWS[row][0] + 1)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    async with an_admin(control_plane) as admin:
        await admin.space(SPACE)
        yield admin
        await admin.clear(SPACE)
    let_go()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    control_plane: ControlPlane, admin: Admin, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Clustered]:
    members = {
        node: {"kubernetes": node, "pool": row, "rack": row if row == "vanished" else node}
        for row in ROWS
        for node in names(row)
    }
    lines = {
        "reach": "{nodes: 500, window_s: 3600, approval_s: 86400, first_nodes: 4, soak_s: 3600, limit_s: 259200}",
        "brake": QUIET,
        "time_scale": "240",
    }
    folder = tmp_path_factory.mktemp("cell")
    async with clustered(folder, (control_plane, admin), POOLS, members, lines) as found:
        # for the row of stale conditions, which takes its time
        await found.last_words("stale-1", "host_state", {"unit:nvidia-fabricmanager.service": "failed"})
        await found.waits("stale-1", "host.unit_failed")
        yield found


async def works(admin: Admin, node: str, **annotations: str) -> str:
    """A customer's pod that runs on the node, and its name."""
    await admin.pod(SPACE, f"on-{node}", node, gpus=1, labels={"on": node}, annotations=annotations)
    await admin.begun(SPACE, f"on-{node}")
    return f"on-{node}"


async def finishes(admin: Admin, node: str) -> None:
    """The customer's work on the node ends by itself, or with its Node."""
    answer = await admin.api.change("DELETE", f"/api/v1/namespaces/{SPACE}/pods/on-{node}", {"gracePeriodSeconds": 0})
    assert answer.status in (200, 404), answer


async def runs_still(admin: Admin, node: str) -> bool:
    pod = await admin.get(f"/api/v1/namespaces/{SPACE}/pods/on-{node}")
    return "deletionTimestamp" not in pod["metadata"]


async def health(admin: Admin, node: str, status: str) -> dict[str, Any]:
    """The condition that the cluster's users see, once it has this status."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            conditions = (await admin.get(f"/api/v1/nodes/{node}"))["status"]["conditions"]
            told: list[dict[str, Any]] = [one for one in conditions if one["type"] == "HostlerHealthy"]
            if told and told[0]["status"] == status:
                return told[0]
            await asyncio.sleep(0.1)


async def test_a_repeated_line_reboots_in_a_loop(world: Clustered, admin: Admin) -> None:
    """Rule: a program's fault costs no node its place, and what is tried in vain is not tried again and again.

    Mutants: Xid 45 is fatal; a rung of the ladder has no number of tries.
    """
    host = world.hosts["loops-1"]
    await works(admin, "loops-1")
    for _ in range(200):
        host.say(XID45)
    await world.until("Ch 00000010", "/v1/nodes/loops-1/observations")
    assert await world.plans("loops-1") == []
    await finishes(admin, "loops-1")
    host.suffer(Trouble("gpu.ecc_uncontained", XID95, ("repair",)))  # nothing that we can do cures it
    assert (await world.ended("loops-1", "gpu_reset"))[0] == "failed"
    for _ in range(20):
        host.say(XID95)
    tried = "/v1/nodes/loops-1/history?limit=200"
    seen = await world.become(tried, lambda seen: len(world.planned(seen)) > 1, "the next rung")
    assert world.planned(seen)[:2] == ["gpu_reset", "reboot"]


async def test_it_uncordons_others_cordons(world: Clustered, admin: Admin) -> None:
    """Rule: a cordon has its owner. Mutant: `unschedulable` is cleared whoever set it."""
    await admin.patch("/api/v1/nodes/others-1", {"spec": {"unschedulable": True}}, manager="kubectl-cordon")
    await world.ask("reset-gpu", "others-1")
    assert await world.ended("others-1", "gpu_reset") == DONE
    assert await world.spec("others-1") == (True, [])


async def test_it_undrains_the_admins_drain(world: Clustered, admin: Admin) -> None:
    """Rule: what is ours bears our name, and nothing else is taken back. Beside another Hostler nothing is done at all.

    Mutants: all taints go with ours; every taint of our key is ours.
    """
    theirs = {"key": "team/maintenance", "effect": "NoSchedule"}
    drained = {"spec": {"unschedulable": True, "taints": [theirs]}, "metadata": {"annotations": {"fans": "are noisy"}}}
    await admin.patch("/api/v1/nodes/admins-1", drained, manager="kubectl-drain")
    await world.ask("reboot", "admins-1")
    assert await world.ended("admins-1", "reboot") == DONE
    assert await world.spec("admins-1") == (True, ["team/maintenance"])
    assert (await admin.get("/api/v1/nodes/admins-1"))["metadata"]["annotations"]["fans"] == "are noisy"

    another = {"key": "hostler.dev/cordon", "value": "another-cell", "effect": "NoSchedule"}
    await admin.patch("/api/v1/nodes/admins-1", {"spec": {"taints": [another]}})
    await world.ask("reset-gpu", "admins-1")
    result, why = await world.ended("admins-1", "gpu_reset")
    assert (result, "another Hostler (another-cell) has cordoned admins-1" in why) == ("failed", True)
    assert await world.spec("admins-1") == (True, ["hostler.dev/cordon"])


async def test_it_drains_again_after_a_person_uncordoned(world: Clustered, admin: Admin) -> None:
    """Rule: a person's override is a hold. Mutant: the cordon is put back where it is missing."""
    await works(admin, "override-1")
    await world.ask("reboot", "override-1")
    await world.shut("override-1")
    await world.waits("override-1", "may not be interrupted")
    await admin.patch("/api/v1/nodes/override-1", {"spec": {"unschedulable": None}})
    await world.until("lifted our cordon in cluster k1", "/v1/holds")
    assert (await world.ended("override-1", "reboot"))[0] == "cancelled"
    await asyncio.sleep(1.5)  # several turns, in which nobody fights
    assert await world.spec("override-1") == (False, [])
    assert await world.plans("override-1") == ["reboot"]
    assert await runs_still(admin, "override-1")


async def test_a_vanished_node_holds_the_lock(world: Clustered, admin: Admin) -> None:
    """Rule: what holds a slot has to exist. Mutant: a drain waits for work on a Node that is listed no more."""
    one, other = names("vanished")
    await works(admin, one)
    await world.ask("reset-gpu", one)
    await world.waits(one, "may not be interrupted")
    await world.ask("reset-gpu", other)
    await world.waits(other, "rack:vanished: 1 of 2 nodes disturbed")
    await admin.delete(f"/api/v1/nodes/{one}")
    await finishes(admin, one)
    assert await world.ended(other, "gpu_reset") == DONE


async def test_a_node_is_left_cordoned(world: Clustered) -> None:
    """Rule: a cordon may have an end, and then ends by itself. Mutant: holds have no end."""
    async with world.watching("deadline-1") as shut:
        await world.ask("cordon", "deadline-1", hours=0.001)
        await until(lambda: True in shut and not shut[-1], "the cordon to come and to go")
    assert (await world.spec("deadline-1")) == (False, [])


async def test_a_failed_drain_leaves_the_node_cordoned(world: Clustered, admin: Admin) -> None:
    """Rule: the cordon is taken back before the slot is given up, and a named person is asked.

    Mutant: past its deadline work is evicted, or the node stays shut.
    """
    await works(admin, "failed-1")
    async with world.watching("failed-1") as shut:
        await world.ask("reboot", "failed-1")
        assert (await world.ended("failed-1", "reboot"))[0] == "cancelled"
        await until(lambda: True in shut and not shut[-1], "the cordon to come and to go")
    assert await world.spec("failed-1") == (False, [])
    assert await runs_still(admin, "failed-1")
    await world.waits("failed-1", "research has been asked to consent")


async def test_a_fixed_share_is_useless_for_a_small_pool(world: Clustered, admin: Admin) -> None:
    """Rule: count and percent, and one node at least. Mutants: 20 % of 3 is none; the stricter does not win."""
    one, other, _ = names("small")
    await works(admin, one)
    await world.ask("reset-gpu", one)
    await world.waits(one, "may not be interrupted")  # so it has begun
    await world.ask("reset-gpu", other)
    await world.waits(other, "pool small: 1 of 3 unavailable, 1 more would exceed the budget of 1")
    await finishes(admin, one)
    assert await world.ended(other, "gpu_reset") == DONE


async def test_a_budget_of_the_cluster_blocks_for_ever(world: Clustered, admin: Admin) -> None:
    """Rule: it is named, and there is a deadline. Mutants: the budget is not named; the pod is deleted."""
    await admin.budget(SPACE, "guard", 1, on="guarded-1")
    await works(admin, "guarded-1", **{"hostler.dev/interruptible": "true"})
    await world.ask("reboot", "guarded-1")
    await world.waits("guarded-1", "PodDisruptionBudget acme/guard allows no disruption")
    assert (await world.ended("guarded-1", "reboot"))[0] == "cancelled"
    assert await world.spec("guarded-1") == (False, [])
    assert await runs_still(admin, "guarded-1")


async def test_there_is_no_global_stop(world: Clustered) -> None:
    """Rule: a pause for the fleet, a cluster or a pool. Mutant: a scope is not among those of a node."""
    for scope in ("fleet", "cluster:k1", "pool:paused"):
        await world.intend("pause", scope)
    await world.ask("reset-gpu", "paused-1")
    for scope in ("fleet", "cluster:k1", "pool:paused"):
        await world.waits("paused-1", f"disruption is paused for {scope}")
        assert await world.plans("paused-1") == []
        await world.intend("resume", scope)
    assert await world.ended("paused-1", "gpu_reset") == DONE


async def test_what_is_in_repair_counts_as_healthy(world: Clustered) -> None:
    """Rule: in repair is unavailable. Mutant: the pool's present members are the denominator."""
    one, other = names("repair")
    await world.ask("return-for-maintenance", one)
    await world.become(f"/v1/nodes/{one}", lambda seen: seen["node"]["phase"] == "triage", "one in repair")
    await world.ask("reboot", other)
    await world.waits(other, "pool repair: 1 of 2 unavailable")
    assert await world.plans(other) == []


async def test_conditions_go_stale(world: Clustered, admin: Admin) -> None:
    """Rule: what nobody can say any more is unknown, and the cluster is told who is silent, not what he said last.

    Mutants: a condition stands as it was seen; the silence is not among what ails the node.
    """
    await world.become("/v1/nodes/stale-1", lambda seen: _unknown(seen["node"]), "the condition to be unknown")
    assert (await health(admin, "stale-1", "False"))["reason"] == "AgentLost"


def _unknown(node: Any) -> bool:
    return any(c["type"] == "host.unit_failed" and c["unknown_since"] for c in node["conditions"])


async def test_a_restart_forgets_what_ailed(world: Clustered, admin: Admin) -> None:
    """Rule: it starts from the record. Mutant: a node is healthy until something is seen anew."""
    world.hosts["restarted-1"].say(XID79)
    await world.waits("restarted-1", "gpu.fallen_off_bus")
    before = await health(admin, "restarted-1", "False")
    await world.stop()
    await world.start()
    seen = await world.node("restarted-1")
    assert [c["type"] for c in seen["conditions"]] == ["gpu.fallen_off_bus"]
    await asyncio.sleep(2.0)  # several turns in which something might be written
    assert (await health(admin, "restarted-1", "False"))["lastTransitionTime"] == before["lastTransitionTime"]


async def test_a_cold_start_replays_an_old_fault_on_a_busy_node(world: Clustered, admin: Admin) -> None:
    """Rule: level, not edge; a finding of an earlier boot is history. Mutant: whatever comes in is of now."""
    host, boot = world.hosts["cold-1"], (await world.node("cold-1"))["boot_id"]
    await world.stop()
    host.say(XID79)
    await until(lambda: "fallen off the bus" in world.spooled("cold-1"), "the line on its agent's disk")
    host.reboot()
    await until(lambda: host.up and host.boot_id != boot, "the machine to be up again")
    await works(admin, "cold-1")
    await world.start()
    await world.until("GPU has fallen off the bus", "/v1/nodes/cold-1/observations")
    await world.become("/v1/nodes/cold-1", lambda seen: seen["node"]["boot_id"] == host.boot_id, "the new boot")
    await asyncio.sleep(1.0)  # several turns in which something might be planned
    assert await world.plans("cold-1") == []
    assert await runs_still(admin, "cold-1")


async def test_the_brake_is_invisible(world: Clustered) -> None:
    """Rule: it is on the front page. Mutant: the brake is in a log."""
    stormy = policy({"brake": STORMY, "time_scale": "240"})
    await world.activate({"policy.yaml": stormy, "pools.yaml": f"{SKUS}pools:\n{POOLS}"})
    for node in names("storm"):
        world.hosts[node].suffer(Trouble("gpu.fallen_off_bus", XID79, ("power_cycle",)))
    await world.become("/v1/status", lambda seen: "storm brake" in json.dumps(seen), "the brake on the front page")
    code, said = await run(HOSTLER, "status", "--server", world.server, "--token-file", str(world.operator))
    assert code in (0, 7)
    assert "brake" in said
