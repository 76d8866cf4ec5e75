"""Real kubelets of a real cluster: our token lets one in, our steps drain it and take it away, and its power fails."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hostler.agent.kubelet import KubeletJoinOffer
from hostler.core.state.bootstrap_kubeconfig import (
    BOOTSTRAP_FILE,
    REGISTRATION_FILE,
    bootstrap_kubeconfig,
    registering_cordoned,
)
from hostler.core.state.join_offer import JoinOffer
from hostler.core.state.model import Operation, Outcome
from hostler.core.state.operations import ConfirmJoin
from hostler.drivers.kubernetes.cordon import CORDON, is_cordoned
from hostler.drivers.kubernetes.csr_approver import CsrApprover
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from tests.contract.kubelet import REQUESTS, Kubelet
from tests.contract.kubernetes_world import running, until, until_asked
from tests.contract.scheduler_world import KubernetesWorld, kubernetes_world, operation
from tests.controlplane.plane import ControlPlane
from tests.controlplane.real_node import IMAGE, RealNode, a_node

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
BOX = "/api/v1/nodes/box-1"
PODS = "/api/v1/namespaces/acme/pods"
TOKENS = "/api/v1/namespaces/kube-system/secrets"
GRACE = """trap '/bin/busybox sleep 2; echo ended > /box/ended; exit 0' TERM
while :; do /bin/busybox sleep 1 & wait; done"""
AGENT = """
import msgspec
from pathlib import Path
from hostler.agent.cluster_pins import read_pins
from hostler.agent.kubelet import KubeletJoinOffer
from hostler.agent.machine import Powers, RealHostMachine
from hostler.agent.node_operations import NodeOperations
from hostler.agent.operation_log import OperationLog
from hostler.core.state.model import Operation
state = Path({state!r})
state.mkdir(exist_ok=True)
body = RealHostMachine("n1", state, Powers(actions=True, clusters=read_pins({url!r}, {ca!r})))
marks = OperationLog(state / "marks.sqlite")
order = msgspec.json.decode({order!r}, type=Operation)
offer = msgspec.json.decode({offer!r}, type=KubeletJoinOffer) if {offer!r} else None
print(msgspec.json.encode(NodeOperations("n1", body, marks).perform(order, 1, offer=offer)).decode())
body.close()
marks.close()
"""


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    async with kubernetes_world(control_plane) as found:
        await found.admin.delete(BOX)
        await found.admin.ask("DELETE", REQUESTS, {})
        async with running(CsrApprover(found.api, found.scheduler.joining).run()):
            yield found
        await found.admin.ask("DELETE", PODS, {"gracePeriodSeconds": 0})
        await found.admin.delete(BOX)
        await found.admin.ask("DELETE", REQUESTS, {})


@pytest.fixture
def real(control_plane: ControlPlane) -> Iterator[RealNode]:
    node = a_node(control_plane, "box-1")
    yield node
    node.close()


def told(real: RealNode, plane: ControlPlane, order: Operation, offer: JoinOffer | None = None) -> Outcome:
    """Carries the order out with the agent's real verbs, on that machine."""
    given = msgspec.json.encode(offer).decode() if offer is not None else ""
    facts = {"state": str(real.folder / "agent"), "url": plane.url, "ca": str(plane.ca), "offer": given}
    said = real.python(AGENT.format(order=msgspec.json.encode(replace(order, boot_id="")).decode(), **facts))
    return msgspec.json.decode(said, type=Outcome)


async def joined(world: KubernetesWorld, real: RealNode, plane: ControlPlane) -> JoinOffer:
    """The three operations of a delivery, until the kubelet is ready; what let it in."""
    join = operation("join_cluster", world.node, token_ttl_s=600.0)
    assert (await world.scheduler.perform(join, world.node)).result == "done"
    offer = world.scheduler.joining.offer("n1")
    assert offer is not None
    await known(real, offer)
    started = told(real, plane, operation("start_kubelet", world.node), offer)
    assert started.result == "done", started
    assert offer.token.partition(".")[2] not in msgspec.json.encode(started).decode()
    confirm = replace(join, id=f"{join.id}-confirmed", act=ConfirmJoin(600))

    async def ready() -> bool:
        return (await world.scheduler.perform(confirm, world.node)).result == "done"

    try:
        await until_asked(ready, "the kubelet to be ready")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{real.log(40)}") from None
    return offer


async def known(real: RealNode, offer: JoinOffer) -> None:
    """Until the API server knows the token; a kubelet that it refuses before tries again a minute later."""
    given = msgspec.convert(msgspec.to_builtins(offer), KubeletJoinOffer)
    path = real.folder / "known.conf"
    path.touch(0o600)
    path.write_text(bootstrap_kubeconfig(given.cluster, given.server, given.ca, given.token))
    async with Api(load_kubeconfig(str(path)), lambda: None) as bearer:
        await Kubelet(real.folder, real.name).let_in(bearer)
    path.unlink()


async def a_pod(world: KubernetesWorld, real: RealNode) -> str:
    """A running pod that takes two seconds of its grace, and writes that it had them; its id as work."""
    (real.folder / "box").mkdir(exist_ok=True)
    container = {
        "name": "c",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/busybox", "sh", "-c", GRACE],
        "volumeMounts": [{"name": "box", "mountPath": "/box"}],
    }
    spec = {
        "nodeName": "box-1",
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 20,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "box", "hostPath": {"path": str(real.folder / "box")}}],
    }
    meta = {"name": "w1", "annotations": {"hostler.dev/interruptible": "true"}}
    pod = await world.admin.ask("POST", PODS, {"metadata": meta, "spec": spec})

    async def runs() -> bool:
        return bool((await world.admin.get(f"{PODS}/w1"))["status"].get("phase") == "Running")

    await until_asked(runs, "the pod to run")
    found = f"acme/w1:{pod['metadata']['uid'][:8]}"
    await until(lambda: found in str(world.scheduler.views().nodes.get("box-1")), "its work to be seen")
    return found


async def node_of(world: KubernetesWorld) -> Any:
    """The Node, None where the cluster lists none."""
    answer = await world.admin.api.get(BOX)
    return msgspec.json.decode(answer.body) if answer.status == 200 else None


async def test_our_token_lets_a_real_kubelet_in_once_and_for_its_own_name(
    world: KubernetesWorld, real: RealNode, control_plane: ControlPlane
) -> None:
    offer = await joined(world, real, control_plane)
    seen = await node_of(world)
    assert seen["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"
    assert seen["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert [taint["key"] for taint in seen["spec"]["taints"]][:1] == ["hostler.dev/cordon"]
    secrets = (await world.admin.get(TOKENS))["items"]
    assert [one for one in secrets if one["type"] == "bootstrap.kubernetes.io/token"] == []

    before = real.kubelet_pid()
    order = replace(operation("start_kubelet", world.node), id="again")
    assert told(real, control_plane, order, offer).result == "done"
    assert real.kubelet_pid() == before, "the same kubeconfig lies there: nothing is restarted"
    real.run("systemctl", "restart", "kubelet")
    await until(lambda: real.kubelet_pid() not in ("", before), "the kubelet to be another process")
    assert (real.folder / "systemctl.log").read_text().split("\n")[:2] == ["restart kubelet", "restart kubelet"]

    real.run("sh", "-c", "rm -rf /var/lib/kubelet/pki /etc/kubernetes/kubelet.conf")
    (real.folder / "kubelet.log").write_text("")
    real.run("systemctl", "restart", "kubelet")  # its token is over: it lets nobody in again
    await until(lambda: "nauthorized" in (real.folder / "kubelet.log").read_text(), "the replayed token to be refused")


async def test_a_token_for_one_node_lets_no_other_in(world: KubernetesWorld, control_plane: ControlPlane) -> None:
    join = operation("join_cluster", world.node, token_ttl_s=600.0)
    assert (await world.scheduler.perform(join, world.node)).result == "done"
    thief = a_node(control_plane, "box-2")
    try:
        offer = world.scheduler.joining.offer("n1")
        outcome = told(thief, control_plane, operation("start_kubelet", world.node), offer)
        assert outcome.result == "done"

        async def denied() -> bool:
            said = json.dumps(await world.admin.get(REQUESTS))
            return "its token is for system:node:box-1" in said

        await until_asked(denied, "its request to be denied")
        assert (await world.admin.api.get("/api/v1/nodes/box-2")).status == 404
    finally:
        thief.close()


@pytest.mark.parametrize("its_node_is_deleted", [False, True])
async def test_one_that_enters_at_its_boot_is_shut_from_its_first_moment_until_it_is_delivered(
    world: KubernetesWorld, real: RealNode, its_node_is_deleted: bool
) -> None:
    """Mutants: the token is issued and no Node listed; the kubelet is given no taint to register with."""
    guest = replace(world.node, assignment=None, boot_id="")
    mint = operation("issue_join_token", guest, cluster="k1", token_ttl_s=600.0)
    assert (await world.scheduler.perform(mint, guest)).result == "done"
    offer = world.scheduler.joining.offer("n1")
    assert offer is not None
    assert CORDON in str(await node_of(world)), "it is listed, shut, before its kubelet comes"
    if its_node_is_deleted:  # then the kubelet lists it by itself
        await world.admin.delete(BOX)
    await known(real, offer)
    given = bootstrap_kubeconfig(offer.cluster, offer.server, offer.ca, offer.token)
    for path, text in ((BOOTSTRAP_FILE, given), (REGISTRATION_FILE, registering_cordoned(offer.taint))):
        (real.folder / "own" / path.lstrip("/")).write_text(text)  # as cloud-init does
    real.run("systemctl", "start", "kubelet")
    seen: list[bool] = []

    async def ready() -> bool:
        node = await world.scheduler._read("box-1")  # noqa: SLF001 - the API server's word, not the copy's
        if node is not None:
            seen.append(is_cordoned(node, world.scheduler.joining._owner))  # noqa: SLF001
        return node is not None and node.ready is True

    try:
        await until_asked(ready, "the kubelet to be ready")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{real.log(40)}") from None
    assert all(seen), seen
    for kind in ("join_cluster", "confirm_join", "uncordon"):

        async def done(kind: str = kind) -> bool:
            args = {} if kind == "uncordon" else {"token_ttl_s": 600.0}
            return (await world.scheduler.perform(operation(kind, world.node, **args), world.node)).result == "done"

        await until_asked(done, kind)
    node = await node_of(world)
    assert not node["spec"].get("unschedulable", False)
    assert CORDON not in str(node["spec"].get("taints", ""))


async def test_it_is_drained_with_grace_leaves_and_is_turned_away_when_it_comes_again(
    world: KubernetesWorld, real: RealNode, control_plane: ControlPlane
) -> None:
    await joined(world, real, control_plane)
    work = await a_pod(world, real)
    evict = operation("evict", world.node, workloads=(work,))
    said = await world.scheduler.perform(evict, world.node)
    assert said.result == "done", said

    async def gone() -> bool:
        return (await world.admin.api.get(f"{PODS}/w1")).status == 404

    await until_asked(gone, "the pod to go")
    assert (real.folder / "box/ended").read_text() == "ended\n", "it had its grace"

    assert (await world.scheduler.perform(operation("leave_cluster", world.node), world.node)).result == "done"
    assert await node_of(world) is None
    real.run("systemctl", "restart", "kubelet")  # nobody has stopped it: it lists the node again

    async def listed() -> bool:
        return await node_of(world) is not None

    try:
        await until_asked(listed, "the kubelet to list its node again")
    except AssertionError as late:
        raise AssertionError(f"{late}\n{real.log(80)}") from None
    left = replace(world.node, assignment=None, left_cluster="k1", boot_id="")
    for kind in ("cordon_uninvited", "delete_uninvited"):

        async def done(kind: str = kind) -> bool:
            return (await world.scheduler.perform(operation(kind, left, cluster="k1"), left)).result == "done"

        await until_asked(done, kind)
    assert await node_of(world) is None

    stopped = told(real, control_plane, operation("stop_kubelet", world.node))
    assert stopped.result == "done", stopped
    assert real.kubelet_pid() == ""
    assert sorted(path.name for path in real.etc.iterdir() if path.is_file()) == ["kubelet.conf.left"]
    real.run("systemctl", "start", "kubelet")  # without a kubeconfig it joins nothing
    assert real.kubelet_pid() == ""


async def test_a_pod_of_a_machine_without_power_stays_ending_until_the_machine_is_back(
    world: KubernetesWorld, real: RealNode, control_plane: ControlPlane
) -> None:
    """A dead kubelet takes no pod away: an eviction is granted, and what it leaves is told as ending, never as gone."""
    await joined(world, real, control_plane)
    work = await a_pod(world, real)
    real.power_off()
    assert real.processes() == []
    evict = operation("evict", world.node, workloads=(work,))
    said = await world.scheduler.perform(evict, world.node)
    assert (said.result, said.facts) == ("done", {"ending": work})
    assert (await world.admin.get(f"{PODS}/w1"))["metadata"]["deletionTimestamp"]
    seen = await world.scheduler.observe(evict, world.node)
    assert seen.facts == {"ending": work}, "its kubelet has not ended it"
    assert not (real.folder / "box/ended").exists()

    real.power_on()

    async def gone() -> bool:
        return (await world.admin.api.get(f"{PODS}/w1")).status == 404

    await until_asked(gone, "the kubelet to take the pod away that it finds")
