"""A node's name in a real cluster, and the machine that answers to it: two kubelets that have changed places."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hostler.controller.inputs import AgentHeard, Tick
from hostler.core.conditions.machine_identity import MISBOUND_S, MISMATCH
from hostler.core.state.assets import Binding
from hostler.core.state.model import Node
from hostler.ports import RefusedError
from hostler.runtime.merged_schedulers import LOOK_UP_TURNS, SchedulerReader, by_cluster
from tests.contract.kubernetes_world import until, until_asked
from tests.contract.scheduler_world import KubernetesWorld, kubernetes_world, operation
from tests.controlplane.plane import ControlPlane
from tests.kit import NOW, Drive, a_node, configuration, pool_document

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
NAMES = {"n1": "box-1", "n2": "box-2"}


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    async with kubernetes_world(control_plane) as found:
        await found.admin.node("box-2")
        await until(lambda: found.scheduler.views().ready.get("box-2"), "its kubelet, which writes its boot id")
        yield found


async def kubelets(world: KubernetesWorld, **boots: str) -> None:
    """The kubelets that answer to these names tell of these boots, again where kwok has written none over one."""
    told = {name.replace("_", "-"): boot for name, boot in boots.items()}

    async def are_shown() -> bool:
        for name, boot in told.items():
            body = {"status": {"nodeInfo": {"bootID": boot}}}
            await world.admin.patch(f"/api/v1/nodes/{name}/status", body, manager="kubelet")
        return dict(world.scheduler.views().boots) == told

    await until_asked(are_shown, "the boots to be shown")


def cell() -> Drive:
    nodes = [replace(a_node(node), bindings=(Binding("kubernetes", name, NOW),)) for node, name in NAMES.items()]
    return Drive(configuration({"train": pool_document(target=2)}), nodes)


def lives(drive: Drive, reader: SchedulerReader, minutes: int) -> list[str]:
    """The cell looks at the cluster and hears its agents for so long; the nodes whose name is another's."""
    for _ in range(LOOK_UP_TURNS):  # seconds, in which a new binding is noticed
        drive.step(*reader.news())
    for _ in range(minutes):
        drive.step(*reader.news(), *(AgentHeard(node, drive.boot_of(node)) for node in NAMES), Tick())
        drive.now += timedelta(minutes=1)
    return [node for node in NAMES if any(c.type == MISMATCH for c in drive.node(node).conditions)]


async def test_two_nodes_that_answer_to_each_others_names_are_both_named_and_nothing_is_done_to_them(
    world: KubernetesWorld,
) -> None:
    """Until a person has bound them anew. Mutants: the boot id is not read; the driver does not ask."""
    drive = cell()
    reader = SchedulerReader(by_cluster([world.scheduler]), lambda: drive.fleet, lambda: drive.controller.live)
    n1, n2 = drive.boot_of("n1"), drive.boot_of("n2")
    await kubelets(world, box_1=n1, box_2=n2)
    assert lives(drive, reader, 30) == []
    await kubelets(world, box_1=n2, box_2=n1)
    assert lives(drive, reader, int(MISBOUND_S / 60) + 2) == ["n1", "n2"]

    for kind in ("cordon", "evict", "leave_cluster", "join_cluster"):
        with pytest.raises(RefusedError, match="another machine answers to the name"):
            await _perform(world, kind, drive.node("n1"))
    assert not (await world.admin.get("/api/v1/nodes/box-1"))["spec"].get("unschedulable", False)

    for node, name in (("n1", "spare-name"), ("n2", "box-1"), ("n1", "box-2")):
        assert drive.ask("rebind", node, kind="kubernetes", value=name).granted
    assert lives(drive, reader, 30) == []
    await _perform(world, "cordon", drive.node("n1"))
    assert (await world.admin.get("/api/v1/nodes/box-2"))["spec"]["unschedulable"]


async def _perform(world: KubernetesWorld, kind: str, node: Node) -> None:
    await world.scheduler.perform(operation(kind, node), node)


async def test_a_kubelet_that_is_not_ready_is_shown_with_the_boot_that_it_told_of_last(world: KubernetesWorld) -> None:
    """The Node's pods ran in that boot. Mutant: it is forgotten with the readiness."""
    await world.admin.node("box-3", boot="of-yesterday")
    await until(lambda: world.scheduler.views().boots.get("box-3") == "of-yesterday", "its boot")
    lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    await world.admin.patch("/api/v1/nodes/box-3/status", {"status": {"conditions": [lost]}})
    await until(lambda: world.scheduler.views().ready.get("box-3") is False, "that it is not ready")
    assert world.scheduler.views().boots["box-3"] == "of-yesterday"
