"""A node listed again in the real cluster that it has left is turned away by recorded operations, guarded like any."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hostler.controller.inputs import Input
from hostler.core.state import events as e
from hostler.core.state.assets import Binding
from hostler.core.state.model import Node, Phase
from hostler.core.state.scopes import FLEET
from hostler.drivers.kubernetes.cordon import CORDON
from hostler.drivers.standalone.scheduler import StandaloneScheduler
from hostler.journal.memory import MemoryJournal
from hostler.ports import Batch, Restored
from hostler.runtime.merged_schedulers import SchedulerDriver, SchedulerReader, by_cluster
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from tests.contract.kubernetes_world import running, until, until_asked
from tests.contract.scheduler_world import KubernetesWorld, kubernetes_world
from tests.controlplane.plane import ControlPlane
from tests.kit import NOW, a_node, configuration, intent_of, pool_document

pytestmark = [pytest.mark.xdist_group("kubernetes"), pytest.mark.nightly("a real control plane runs beside it")]

TOLD_S = 0.5
"""How often `serve` tells the controller what the schedulers show."""
LEFT_ALONE_S = 3.0
OPEN_S = 2.0
TIMES = 5


class CopiedJournal(MemoryJournal):
    """A journal that was filled from a copy."""

    def restored(self) -> Restored | None:
        return Restored(datetime.now(UTC), "a copy", 2)


@pytest.fixture
async def world(control_plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    async with kubernetes_world(control_plane) as found:
        await found.admin.delete("/api/v1/nodes/box-1")
        await until(lambda: "box-1" not in found.scheduler.views().nodes, "box-1 to be gone")
        yield found
        await found.admin.delete("/api/v1/nodes/box-1")


def has_left() -> Node:
    """A node that waits for a person, and is bound to the name of a Node in the cluster that it was taken out of."""
    bound = (Binding("kubernetes", "box-1", NOW),)
    return a_node("n1", "", bindings=bound, phase=Phase.debug, left_cluster="k1", left_pool="train")


@asynccontextmanager
async def a_cell(world: KubernetesWorld, journal: MemoryJournal, **pool: Any) -> AsyncIterator[Cell]:
    """A cell in which n1 has left the cluster, as `serve` runs it."""
    config = configuration({"train": pool_document(**{"target": 1, **pool})})
    known: tuple[e.Event, ...] = (e.ConfigActivated(config, {}, "ann"), e.NodeRegistered(has_left()))
    records = tuple(e.Record(i + 1, NOW, 1, "seed", event) for i, event in enumerate(known))
    journal.append(Batch(records), journal.acquire("seed"))
    clusters = by_cluster([world.scheduler])

    def show(node: Node, cluster: str) -> None:
        tell(scheduler_reader.of_node(node, cluster))

    def tell(shown: Iterable[Input]) -> None:
        for seen in shown:
            cell.tell(seen)

    async def go_on_telling() -> None:
        while True:
            tell(scheduler_reader.news())
            await asyncio.sleep(TOLD_S)

    cell = Cell(journal, performers(Wiring((SchedulerDriver(clusters, StandaloneScheduler(lambda: None), show),))))
    scheduler_reader = SchedulerReader(clusters, lambda: cell.view, lambda: cell.live)

    await cell.start()
    try:
        async with running(go_on_telling()):
            yield cell
    finally:
        await cell.stop()


async def ask(cell: Cell, verb: str, target: str, **args: str) -> None:
    intent = intent_of(f"i-{verb}-{time.monotonic_ns()}", verb, target, "ann", "because", datetime.now(UTC), args)
    reply = await cell.ask(intent)
    assert reply.granted, reply.text


async def is_open(world: KubernetesWorld) -> bool:
    node = await world.admin.get("/api/v1/nodes/box-1")
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return not node["spec"].get("unschedulable", False) and CORDON not in taints


async def is_gone(world: KubernetesWorld) -> bool:
    return (await world.api.get("/api/v1/nodes/box-1")).status == 404


async def stands(cell: Cell) -> None:
    await until(lambda: [c.type for c in cell.view.nodes["n1"].conditions] == ["node.uninvited"], "the condition")


def told(cell: Cell) -> list[str]:
    """Returns the blockers that keep the Node as it is, beside whom the node's phase waits for."""
    waiting = cell.view.nodes["n1"].waiting
    return [blocker.kind for blocker in waiting.blockers if blocker.kind != "person"] if waiting else []


async def test_an_uninvited_node_is_cordoned_and_deleted_by_recorded_operations(world: KubernetesWorld) -> None:
    journal = MemoryJournal()
    async with a_cell(world, journal) as cell:
        await world.admin.node("box-1")
        await until_asked(lambda: is_gone(world), "the Node to be deleted")
        await until(lambda: not cell.view.nodes["n1"].conditions, "the condition to clear")
        acts = [r.event for r in reversed(cell.journal.history("n1")) if isinstance(r.event, e.OperationFinished)]
        assert [(act.kind, act.result) for act in acts] == [("cordon_uninvited", "done"), ("delete_uninvited", "done")]


async def test_it_stands_open_for_two_seconds_at_most(world: KubernetesWorld) -> None:
    async with a_cell(world, MemoryJournal()) as cell:
        for _ in range(TIMES):
            await world.admin.node("box-1")
            async with asyncio.timeout(OPEN_S):
                while await is_open(world):  # noqa: ASYNC110 - another process rings no bell
                    await asyncio.sleep(0.01)
            await until_asked(lambda: is_gone(world), "the Node to be deleted")
            await until(lambda: not cell.view.nodes["n1"].conditions, "the condition to clear")


async def test_a_customer_who_has_come_to_it_keeps_it_listed(world: KubernetesWorld) -> None:
    """Mutant: it is deleted with a customer's pod on it."""
    async with a_cell(world, MemoryJournal()) as cell:
        await ask(cell, "pause", FLEET)
        await world.admin.node("box-1")
        await world.admin.pod("acme", "landed", "box-1", gpus=1)
        await stands(cell)
        await until(lambda: cell.live.of("n1").workloads.get("k1"), "the pod to be seen")
        await ask(cell, "resume", FLEET)
        await until(lambda: told(cell) == ["workload"], "who keeps it")
        assert not await is_open(world)
        await world.admin.ask("DELETE", "/api/v1/namespaces/acme/pods/landed", {"gracePeriodSeconds": 0})
        await until_asked(lambda: is_gone(world), "the Node to be deleted")


async def test_another_machine_that_answers_to_the_name_is_not_touched(world: KubernetesWorld) -> None:
    async with a_cell(world, MemoryJournal()) as cell:
        await world.admin.node("box-1", boot="of-another-machine")
        await stands(cell)
        await asyncio.sleep(LEFT_ALONE_S)
        assert await is_open(world)
        assert told(cell) == ["binding"]


async def test_who_uncordons_the_node_by_kubernetes_own_means_is_not_fought(world: KubernetesWorld) -> None:
    """Mutant: it is cordoned again, or deleted."""
    async with a_cell(world, MemoryJournal()) as cell:
        await ask(cell, "pause", FLEET)
        await world.admin.node("box-1")
        await world.admin.pod("acme", "landed", "box-1", gpus=1)
        await stands(cell)
        await until(lambda: cell.live.of("n1").workloads.get("k1"), "the pod to be seen")
        await ask(cell, "resume", FLEET)
        await until(lambda: told(cell) == ["workload"], "who keeps it")
        await world.admin.patch("/api/v1/nodes/box-1", {"spec": {"unschedulable": None}})
        await until(lambda: told(cell) == ["hold"], "the override as a hold")
        await world.admin.ask("DELETE", "/api/v1/namespaces/acme/pods/landed", {"gracePeriodSeconds": 0})
        await asyncio.sleep(LEFT_ALONE_S)
        assert not (await world.admin.get("/api/v1/nodes/box-1"))["spec"].get("unschedulable", False)


@pytest.mark.parametrize("target", ["rack:r1", "n1", "cluster:k1", "pool:train"])
async def test_a_hold_leaves_the_node_as_it_is_until_it_is_released(world: KubernetesWorld, target: str) -> None:
    async with a_cell(world, MemoryJournal()) as cell:
        await ask(cell, "hold", target)
        await world.admin.node("box-1")
        await stands(cell)
        await asyncio.sleep(LEFT_ALONE_S)
        assert await is_open(world)
        assert told(cell) == ["hold"]
        await ask(cell, "release", next(iter(cell.view.holds)))
        await until_asked(lambda: is_gone(world), "the Node to be deleted")


@pytest.mark.parametrize("target", ["rack:r1", FLEET])
async def test_a_pause_leaves_the_node_as_it_is_until_it_is_over(world: KubernetesWorld, target: str) -> None:
    async with a_cell(world, MemoryJournal()) as cell:
        await ask(cell, "pause", target)
        await world.admin.node("box-1")
        await stands(cell)
        await asyncio.sleep(LEFT_ALONE_S)
        assert await is_open(world)
        assert told(cell) == ["pause"]
        await ask(cell, "resume", target)
        await until_asked(lambda: is_gone(world), "the Node to be deleted")


async def test_a_restored_cell_leaves_the_node_as_it_is_until_it_is_released(world: KubernetesWorld) -> None:
    async with a_cell(world, CopiedJournal()) as cell:
        await world.admin.node("box-1")
        await stands(cell)
        await asyncio.sleep(LEFT_ALONE_S)
        assert await is_open(world)
        assert told(cell) == ["restored"]
        await ask(cell, "release-restore", FLEET, unheard="1")
        await until_asked(lambda: is_gone(world), "the Node to be deleted")


async def test_a_pool_that_is_only_watched_is_not_acted_for(world: KubernetesWorld) -> None:
    async with a_cell(world, MemoryJournal(), modes={"*": "observe"}) as cell:
        await world.admin.node("box-1")
        await stands(cell)
        await asyncio.sleep(LEFT_ALONE_S)
        assert await is_open(world)
        assert told(cell) == ["mode"]
        await ask(cell, "mode", "pool:train", mode="act")
        await until_asked(lambda: is_gone(world), "the Node to be deleted")
