"""Worlds in which idle checks are tried: a real Kubernetes with its scheduler, and clusters in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import Node, Operation, Outcome, Verdict
from hostler.core.state.operations import IdleCheck
from hostler.drivers.kubernetes.wire import GPU_RESOURCES
from hostler.ports import Scheduler
from hostler.sim.emulated.emulated_scheduler import JobSpec
from tests.contract.kubernetes_world import until, until_asked
from tests.contract.scheduler_world import EmulatedWorld, KubernetesWorld, SimulatedWorld, kubernetes_world
from tests.controlplane.plane import ControlPlane

_NUMBERS = count(1)
IMAGES = {Verdict.passed: "check.test/passes", Verdict.failed: "check.test/fails", None: "check.test/works"}


class SlotWorld(Protocol):
    """`check` gives an operation whose check finds this (None: it goes on and on); `wants` is a customer that comes."""

    @property
    def node(self) -> Node: ...
    @property
    def scheduler(self) -> Scheduler: ...

    def check(self, finds: Verdict | None) -> Operation: ...

    async def wants(self) -> str: ...

    async def settles(self) -> None: ...


def a_check(node: Node, image: str, number: int = 0) -> Operation:
    now = datetime.now(UTC)
    name = f"{node.id}-idle-{number or next(_NUMBERS)}"
    return Operation(name, IdleCheck("idle", image), node.id, "", 0, now, now + timedelta(seconds=120))


class EmulatedSlots(EmulatedWorld):
    """Time passes as it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0

    def check(self, finds: Verdict | None) -> Operation:
        self.scheduler.checks_s = 1e9 if finds is None else 1.0
        self.scheduler.verdict = lambda _node: (finds or Verdict.passed, "gpu3: it computes otherwise")
        return a_check(self.node, "any")

    async def wants(self) -> str:
        self.scheduler.submit(JobSpec("job", "train", "acme", 1, WorkClass.uninterruptible, 1e9))
        await self.settles()
        return self.scheduler.views().nodes["box-1"].workloads[-1].id

    async def settles(self) -> None:
        self._now_s += 2.0
        self.scheduler.turn(self._now_s)


class SimulatedSlots(SimulatedWorld):
    """An hour passes as it is asked, where a check is to end."""

    def __init__(self) -> None:
        super().__init__()
        self._passes_s = 0.0

    def check(self, finds: Verdict | None) -> Operation:
        self._passes_s = 0.0 if finds is None else 3600.0
        self.scheduler.verdict = lambda _node: ((finds or Verdict.passed).value, "gpu3: it computes otherwise")
        return a_check(self.node, "any")

    async def wants(self) -> str:
        return await self.works(WorkClass.uninterruptible)

    async def settles(self) -> None:
        until = self.site.clock.now + timedelta(seconds=self._passes_s)
        while (due := self.site.clock.next()) is not None and due <= until:
            self.site.clock.turn()
        self.site.clock.skip(until)


class KubernetesSlots:
    """The cluster's own scheduler places, pre-empts and waits; kwok stands for the containers."""

    def __init__(self, world: KubernetesWorld) -> None:
        self.node = world.node
        self.scheduler = world.scheduler
        self.world = world

    def check(self, finds: Verdict | None) -> Operation:
        return a_check(self.node, IMAGES[finds])

    async def wants(self) -> str:
        """A customer's pod that wants all of the node's GPUs, wherever there are any."""
        name, much = f"train-{next(_NUMBERS)}", {GPU_RESOURCES[0]: "8"}
        container = {"name": "c", "image": "i", "resources": {"limits": much}}
        body = {"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
        await self.world.admin.ask("POST", "/api/v1/namespaces/acme/pods", body)
        return f"acme/{name}"

    async def settles(self) -> None:
        """The cluster goes its own pace."""


@asynccontextmanager
async def kubernetes_slots(plane: ControlPlane) -> AsyncIterator[KubernetesSlots]:
    async with kubernetes_world(plane) as world:
        slots = KubernetesSlots(world)
        await until(lambda: not world.cache.checks_lost, "Jobs to be listed")
        try:
            yield slots
        finally:
            for job in list(world.cache.jobs.items.values()):
                where = f"/apis/batch/v1/namespaces/{job.namespace}/jobs/{job.name}?propagationPolicy=Background"
                await world.admin.delete(where)
            await world.admin.clear("hostler-checks")


async def ends(world: SlotWorld, operation: Operation) -> Outcome:
    """Waits for the check's outcome."""
    said: list[Outcome] = []

    async def ended() -> bool:
        await world.settles()
        said[:] = [await world.scheduler.observe(operation, world.node)]
        return said[0].result != "unknown"

    await until_asked(ended, f"the end of {operation.id}")
    return said[0]
