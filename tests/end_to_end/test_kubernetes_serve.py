"""A served cell beside a real Kubernetes: whose work waits is named, budgets too, and a person's uncordon is a hold."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hostler.cli.exit_codes import ExitCode
from hostler.drivers.kubernetes.wire import ANSWER, REQUEST
from tests.contract.kubernetes_world import Admin, an_admin, as_hostler, let_go
from tests.controlplane.plane import ControlPlane
from tests.end_to_end.served import NODE, POLICY, Served, served_beside

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
BOX = "box-1"
PATIENCE_S = 90.0


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Admin]:
    """The cluster, as its admin has it, with a namespace and the node."""
    async with an_admin(control_plane) as admin:
        await admin.space("acme")
        await admin.node(BOX)
        yield admin
        await admin.clear("acme")
    let_go()


@pytest.fixture
async def served(control_plane: ControlPlane, admin: Admin, tmp_path: Path) -> AsyncIterator[Served]:
    how = ["--cluster", f"k1={await as_hostler(control_plane, admin)}@x"]
    async with served_beside(tmp_path, "k1", {"kubernetes": BOX}, how, PATIENCE_S) as world:
        yield world


async def unschedulable(admin: Admin) -> bool:
    node = await admin.get(f"/api/v1/nodes/{BOX}")
    return bool(node["spec"].get("unschedulable", False))


async def answered(admin: Admin) -> str:
    """The answer to the request on the Node, once it is given."""
    async with asyncio.timeout(PATIENCE_S):
        while REQUEST in (notes := (await admin.get(f"/api/v1/nodes/{BOX}"))["metadata"]["annotations"]):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return str(notes[ANSWER])


@pytest.mark.smoke
async def test_a_drain_names_who_it_waits_for_and_a_persons_uncordon_holds_it_off(
    served: Served, admin: Admin, control_plane: ControlPlane
) -> None:
    await admin.budget("acme", "guard", 1, app="db")
    await admin.pod("acme", "db", BOX, labels={"app": "db"}, annotations={"hostler.dev/interruptible": "true"})
    await admin.begun("acme", "db")
    await admin.pod("acme", "train", BOX, gpus=8)
    await served.until("acme/train:")
    await served.say("node", "drain", NODE, "--reason", "new kernel")
    await served.until("of acme runs here and may not be interrupted")
    await served.until("PodDisruptionBudget acme/guard allows no disruption")
    assert await unschedulable(admin)

    control_plane.stop_api()  # unknown work may not be disturbed, and is not forgotten
    await served.until("what runs on the node is unknown: cluster k1 has not been heard")
    control_plane.start_api()
    await served.until("PodDisruptionBudget acme/guard allows no disruption")

    await admin.patch(f"/api/v1/nodes/{BOX}", {"spec": {"unschedulable": None}})
    await served.until("lifted our cordon in cluster k1")
    await served.until('"plan":null')
    assert not await unschedulable(admin)  # not fought
    assert "hostler.dev/cordon" not in json.dumps((await admin.get(f"/api/v1/nodes/{BOX}"))["spec"])

    (hold,) = await served.overrides()
    await served.say("hold", "release", hold, "--reason", "go on")
    await served.until("of acme runs here and may not be interrupted")
    assert await unschedulable(admin)

    await admin.delete("/apis/policy/v1/namespaces/acme/poddisruptionbudgets/guard")
    await admin.ask("DELETE", "/api/v1/namespaces/acme/pods/train", {"gracePeriodSeconds": 0})
    await served.until('"plan":null')
    left = [pod["metadata"]["name"] for pod in (await admin.get("/api/v1/namespaces/acme/pods"))["items"]]
    assert left == []
    node = await admin.get(f"/api/v1/nodes/{BOX}")
    assert node["metadata"]["labels"]["hostler.dev/pool"] == "train"

    await admin.patch(f"/api/v1/nodes/{BOX}", {"metadata": {"annotations": {"hostler.dev/request": "reboot"}}})
    answer = await answered(admin)
    assert "reboot refused" in answer
    assert "start the agent of n1 with --allow-actions" in answer  # it has no BMC, and its agent may not act
    await admin.patch(f"/api/v1/nodes/{BOX}", {"metadata": {"annotations": {"hostler.dev/request": "maintenance"}}})
    await served.until("asked for on the Node in cluster k1")
    assert "maintenance granted" in await answered(admin)


async def test_no_pool_acts_beside_another_remediator_before_a_person_has_accepted_it(
    served: Served, admin: Admin, control_plane: ControlPlane
) -> None:
    """Mutant: a served cell does not look for itself, or never looks again."""
    where = ("--cluster", f"k1={control_plane.kubeconfig('hostler')}")
    code, said = await served.tell("doctor", *where)
    assert code == ExitCode.ok, said
    spec = {"nodeName": BOX, "containers": [{"name": "c", "image": "docker.io/planetlabs/draino:9d39b53"}]}
    draino = {"metadata": {"name": "draino"}, "spec": {**spec, "tolerations": [{"operator": "Exists"}]}}
    await admin.ask("POST", "/api/v1/namespaces/acme/pods", draino)
    await served.until('"name":"draino"', "/v1/status")
    code, said = await served.tell("pool", "mode", "train", "act", "--reason", "begin")
    assert code == ExitCode.refused
    assert "draino remediates nodes of cluster k1 too" in said
    code, said = await served.tell("doctor", *where, "-o", "json")
    assert code == ExitCode.unsound
    assert [one["name"] for one in json.loads(said)["items"] if one["bad"]] == ["draino"]
    await served.say("doctor", "accept", "k1", "draino", "--reason", "it only watches the other pool")
    code, said = await served.tell("doctor", *where)
    assert code == ExitCode.ok, said
    assert "accepted by ann" in said
    await served.say("pool", "mode", "train", "act", "--reason", "begin")


async def test_an_idle_node_is_checked_by_a_job_whose_verdict_and_readings_are_told(
    admin: Admin, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """An hour is fifteen seconds here. Mutants: no hand makes a Job; no reading is kept; no Lease is renewed."""
    async with slots(admin, control_plane, tmp_path, "check.test/reads") as served:
        await served.until('"verdict":"passed"')
        code, said = await served.tell("node", "explain", NODE)
        assert code == 0
        assert "checked    idle passed" in said
        assert "1 GPU [least of the parts: gemm_perf.bf16_tflops 741.5 (cuda:0)]" in said
        await served.until('"metric":"gemm_perf.bf16_tflops"', f"/v1/nodes/{NODE}/trends")
    lease = await admin.get("/apis/coordination.k8s.io/v1/namespaces/hostler-checks/leases/hostler")
    assert lease["spec"]["holderIdentity"]


async def test_a_customer_takes_the_place_of_an_idle_check(
    admin: Admin, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Mutants: the customer's pod waits for the check; a check that was cut off counts."""
    async with slots(admin, control_plane, tmp_path, "check.test/works") as served:
        await served.until('"kind":"idle_check"', f"/v1/nodes/{NODE}/history")
        async with asyncio.timeout(PATIENCE_S):
            while not await running_checks(admin):  # noqa: ASYNC110 - the cluster's own pace
                await asyncio.sleep(0.1)
        container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
        pod = {"metadata": {"name": "train"}, "spec": {"containers": [container]}}
        await admin.ask("POST", "/api/v1/namespaces/acme/pods", pod)
        await served.until('"verdict":"inconclusive"')
        await served.until("acme/train")
        said = [one["detail"] for one in json.loads(await served.read(f"/v1/nodes/{NODE}"))["node"]["checks"]]
        assert "pre-empted" in said[0] or "acme/train" in said[0]


@asynccontextmanager
async def slots(admin: Admin, plane: ControlPlane, folder: Path, image: str) -> AsyncIterator[Served]:
    """A served node whose slots come every fifteen seconds, and run this image."""
    policy = re.sub(r"(?m)^  time_scale: .*$", "  time_scale: 240", POLICY.read_text())
    lab = folder / "policy.yaml"
    lab.write_text(policy.replace("cluster_count: 64}", f"cluster_count: 64, image: {image}}}"))
    how = ["--cluster", f"k1={await as_hostler(plane, admin)}@x"]
    async with served_beside(folder, "k1", {"kubernetes": BOX}, how, PATIENCE_S, lab) as served:
        await served.say("pool", "mode", "train", "act", "--remedy", "idle_check", "--reason", "try it")
        yield served
    await admin.clear("hostler-checks")


async def running_checks(admin: Admin) -> list[str]:
    """The pods of idle checks that run."""
    pods = (await admin.get("/api/v1/namespaces/hostler-checks/pods"))["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
