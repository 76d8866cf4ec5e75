"""Hostler's labels and conditions as columns of kubectl, for a cluster's users."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.core.state.assets import Binding
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import Condition, Severity
from hostler.drivers.kubernetes.node_status_writer import NodeStatusWriter
from hostler.drivers.kubernetes.public_names import LABELS
from tests.contract.kubernetes_world import PATIENCE_S, until
from tests.contract.scheduler_world import KubernetesWorld, kubernetes_world, perform
from tests.controlplane.plane import ControlPlane
from tests.kit import NOW, a_node, configuration, pool_document

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]
COLUMNS = Path(__file__).parents[2] / "deploy/kubernetes/nodes.columns"


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl: kubernetes.io/docs/tasks/tools")
    async with kubernetes_world(control_plane) as found:
        yield found


def kubectl(plane: ControlPlane, *words: str) -> list[str]:
    """The line of box-1."""
    command = ("kubectl", f"--kubeconfig={plane.kubeconfig('admin')}", "get", "nodes", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("box-1 ")]
    return line.split()


async def test_kubectl_shows_where_a_node_stands_what_ails_it_and_why_it_is_shut(
    world: KubernetesWorld, control_plane: ControlPlane
) -> None:
    """Mutants: a label or condition of another name than the columns ask for."""
    fault = Condition("c1", "gpu.fallen_off_bus", "n1", Severity.catastrophic, NOW, NOW, "remedy", "hostler")
    node = a_node("n1", domains=("nvlink:d7", "rail:3"), bindings=(Binding("kubernetes", "box-1", NOW),))
    node = replace(node, position=replace(node.position, rack="r1"), conditions=(fault,))
    fleet = Fleet()
    fleet.configurations.put("active", configuration({"train": pool_document(target=1)}))
    fleet.put_node("n1", node)
    await perform(world, "cordon")
    await until(lambda: world.cache.nodes.items["box-1"].unschedulable, "the cordon to be seen")
    await NodeStatusWriter(world.scheduler, world.api, world.cache, lambda: fleet).turn()

    labels = kubectl(control_plane, "-L", ",".join(name.name for name in LABELS))
    assert labels[1] == "Ready,SchedulingDisabled"
    assert labels[-6:] == ["n1", "production", "train", "r1", "d7", "3"]
    shown = kubectl(control_plane, "-o", f"custom-columns-file={COLUMNS}")
    assert shown[:8] == ["box-1", "True", "production", "train", "r1", "GpuFallenOffBus", "Idle", "None"]
    assert shown[8] == "cordon;"  # what it was cordoned for, and by which plan
