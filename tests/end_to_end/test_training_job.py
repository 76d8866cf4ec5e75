"""A training Job over a real cluster: what may wait waits for it, what may not takes one node, and a spare steps in."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hostler.sim.emulated.emulated_server import Trouble, gpu_address
from tests.contract.kubernetes_world import Admin, an_admin, let_go
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.clustered import PATIENCE_S, Clustered, clustered, job, on_nodes
from tests.end_to_end.processes import HOSTLER, run

pytestmark = [
    pytest.mark.nightly("processes are started and ended for minutes"),
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.asyncio(loop_scope="module"),
]
NODES = [f"gpu-{number}" for number in range(1, 9)]
SPARE = "spare-1"
POOLS = """
  train: {sku: h100, target: 8, tenant: acme, cluster: k1, owner: research, modes: {"*": act},
          budget: {count: 2, percent: 100}}
"""
LINES = {"gpu.fallen_off_bus": "{remedy: triage, timing: immediate, dooms: part}", "time_scale": "5"}
"""The pool's owner waits for no second try, and a step's limit is a minute, as long as these tests have patience."""

GPUS = ",".join(f"pci:{gpu_address(number)}" for number in range(8))
XID79 = f"NVRM: Xid (PCI:{gpu_address(3)}): 79, pid=1234, name=python3, GPU has fallen off the bus."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    async with an_admin(control_plane) as admin:
        await admin.space("acme")
        yield admin
        await admin.ask("DELETE", "/apis/batch/v1/namespaces/acme/jobs?propagationPolicy=Background", {})
        await admin.clear("acme")
    let_go()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    control_plane: ControlPlane, admin: Admin, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Clustered]:
    members = {node: {"kubernetes": node, "pool": "train", "rack": f"r{node[-1]}"} for node in NODES}
    spare = {SPARE: {"kubernetes": SPARE, "rack": "r9"}}
    folder = tmp_path_factory.mktemp("cell")
    async with clustered(folder, (control_plane, admin), POOLS, members | spare, LINES) as found:
        yield found


async def runs(world: Clustered, name: str, pods: int) -> dict[str, str]:
    """Node → pod, once so many pods of the Job run."""
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            while len(found := on_nodes(await world.pods("acme"), name)) < pods:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        waiting = [pod["status"] for pod in await world.pods("acme") if pod["metadata"]["name"].startswith(name)]
        waiting = [status for status in waiting if status.get("phase") != "Running"]
        raise AssertionError(f"{name} never ran {pods} pods: {found}\n{json.dumps(waiting)[:2_000]}") from None
    return found


async def until_gone(admin: Admin, node: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await admin.api.get(f"/api/v1/nodes/{node}")).status != 404:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def completes(world: Clustered, name: str) -> None:
    """Every pod of the Job has done its work."""
    for pod in on_nodes(await world.pods("acme"), name).values():
        ended = {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}
        await world.admin.patch(f"/api/v1/namespaces/acme/pods/{pod}/status", {"status": ended})


async def test_a_pending_reboot_waits_for_the_job_and_takes_the_node_before_the_next_one(
    world: Clustered, admin: Admin
) -> None:
    """Mutant: the node is shut only once its work has ended: the next Job's pod is there first, and is waited for."""
    node = NODES[2]
    await job(admin, "acme", "first", 8)
    before = await runs(world, "first", 8)
    boot = (await world.node(node))["boot_id"]
    await world.ask("reboot", node)
    await world.waits(node, "acme/first of acme runs here")
    await job(admin, "acme", "next", 8)
    assert on_nodes(await world.pods("acme"), "first") == before  # nobody was disturbed
    await completes(world, "first")
    assert node not in await runs(world, "next", 7)
    assert (await world.ended(node, "reboot"))[0] == "done"
    after = await runs(world, "next", 8)
    rebooted = (await world.node(node))["boot_id"]
    assert rebooted != boot
    steps = [record for record in await world.history(node) if record["name"] == "operation_started"]
    opened = next(one["at"] for one in reversed(steps) if one["event"]["operation"]["act"]["kind"] == "uncordon")
    pod = await admin.get(f"/api/v1/namespaces/acme/pods/{after[node]}")
    placed = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")["lastTransitionTime"]
    assert placed[:19] >= opened[:19]  # the API tells whole seconds
    await completes(world, "next")


async def test_a_gpu_reset_lets_the_gpu_operators_operands_go_and_come_back(world: Clustered, admin: Admin) -> None:
    """Mutants: the agent's hand is asked past the cluster; nobody lets back what has gone."""
    node, label = NODES[1], "nvidia.com/gpu.deploy.dcgm"
    await admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {label: "true"}}})
    await world.ask("reset-gpu", node)
    assert (await world.ended(node, "gpu_reset"))[0] == "done"
    async with asyncio.timeout(PATIENCE_S):
        while (meta := (await admin.get(f"/api/v1/nodes/{node}"))["metadata"])["labels"][label] != "true":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    wrote = [one["manager"] for one in meta["managedFields"] if f'"f:{label}"' in json.dumps(one["fieldsV1"])]
    assert wrote == ["hostler"], "it has been another value, and who wrote it last is on record"
    assert "hostler.dev/operands-paused-for" not in meta["annotations"]


async def test_a_catastrophic_fault_takes_one_node_and_its_pod_goes_on_on_the_delivered_spare(
    world: Clustered, admin: Admin
) -> None:
    """Mutants: the token stays; the left node stays listed; a spare opens before its gate check has passed."""
    await job(admin, "acme", "training", 8, **{"hostler.dev/gpus": GPUS})
    before = await runs(world, "training", 8)
    broken = NODES[4]
    world.hosts[broken].suffer(Trouble("gpu.fallen_off_bus", XID79, ("repair",)))
    await world.become(f"/v1/nodes/{broken}", lambda seen: seen["node"]["phase"] == "triage", "the node in triage")
    assert (await world.admin.api.get(f"/api/v1/nodes/{broken}")).status == 404
    result, why = await world.ended(SPARE, "deliver")
    assert result == "done", why
    after = await runs(world, "training", 8)
    assert SPARE in after
    others = {node: pod for node, pod in before.items() if node != broken}
    assert {node: pod for node, pod in after.items() if node != SPARE} == others  # one node, and nobody else
    steps = [r["event"]["kind"] for r in await world.history(SPARE) if r["name"] == "operation_finished"]
    assert steps[-5:] == ["join_cluster", "start_kubelet", "confirm_join", "run_checks", "uncordon"]
    assert await world.spec(SPARE) == (False, [])
    secrets = (await admin.get("/api/v1/namespaces/kube-system/secrets"))["items"]
    assert [one for one in secrets if one["type"] == "bootstrap.kubernetes.io/token"] == []

    words = ("--server", world.server, "--token-file", str(world.operator))
    await admin.node(broken)  # its kubelet was started again, and lists it, open to work
    await world.until("its kubelet has registered it there again", f"/v1/nodes/{broken}/history?limit=50")
    await until_gone(admin, broken)
    assert broken not in on_nodes(await world.pods("acme"))

    code, said = await run(HOSTLER, "node", "explain", broken, *words)
    assert code == 0
    for told in (
        "the GPU does not answer on PCIe",
        "triage (immediate): cordon → drain → collect_evidence → leave_cluster → stop_kubelet",
        "evict done",
        "collect_evidence done",
        "leave_cluster done",
        "production → triage",
    ):
        assert told in said, said
    code, said = await run(HOSTLER, "node", "explain", SPARE, *words)
    assert code == 0
    joined = (f"{kind} done" for kind in ("join_cluster", "start_kubelet", "confirm_join", "run_checks", "uncordon"))
    for told in ("deliver", *joined):
        assert told in said, said
    history = json.dumps(await world.history(broken)) + json.dumps(await world.history(SPARE))
    assert "token-secret" not in history
