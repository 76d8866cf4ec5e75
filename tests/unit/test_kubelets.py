"""Kubelets are started and stopped by the agents of Kubernetes clusters' nodes, and nobody else's are told anything."""

import pytest
from msgspec.structs import replace

from hostler.app.cluster_connections import Kubelets
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import plain
from hostler.ports import OperationDriver, RefusedError, UnreachableError
from tests.kit import CLUSTER, NOW, a_node, after


class Agents:
    """Write down what they are asked."""

    kinds = frozenset({"start_kubelet", "stop_kubelet"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(f"perform {operation.kind}")
        return Outcome(operation.id, node.id, "done")

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(f"observe {operation.kind}")
        return Outcome(operation.id, node.id, "done")

    async def revoke(self, operation: Operation, node: Node) -> None:
        self.asked.append(f"revoke {operation.kind}")


def operation(kind: str) -> Operation:
    return Operation("o1", plain(kind), "a", "p1", 0, NOW, after(minutes=1))


def kubelets(agents: OperationDriver | None, *clusters: str) -> Kubelets:
    return Kubelets(clusters, lambda: agents)


@pytest.mark.parametrize("kind", ["start_kubelet", "stop_kubelet"])
async def test_the_agent_of_a_node_of_a_kubernetes_cluster_is_asked(kind: str) -> None:
    agents = Agents()
    driver = kubelets(agents, CLUSTER)
    assert (await driver.perform(operation(kind), a_node("a"))).result == "done"
    assert (await driver.observe(operation(kind), a_node("a"))).result == "done"
    await driver.revoke(operation(kind), a_node("a"))
    assert agents.asked == [f"{how} {kind}" for how in ("perform", "observe", "revoke")]


async def test_on_a_node_of_another_cluster_or_of_none_nothing_is_sent() -> None:
    """Mutant: the kubelet of a node that serves Slurm is stopped, though it is somebody else's."""
    agents = Agents()
    for node in (a_node("a"), replace(a_node("a"), assignment=None)):
        with pytest.raises(RefusedError, match="has no kubelets that Hostler starts or stops"):
            await kubelets(agents, "other").perform(operation("stop_kubelet"), node)
    assert agents.asked == []


async def test_before_the_controller_has_started_nothing_is_sent() -> None:
    with pytest.raises(UnreachableError):
        await kubelets(None, CLUSTER).perform(operation("start_kubelet"), a_node("a"))
