"""Worlds in which a scheduler is tried: each gives a node, the `Scheduler` of its cluster, and its customers."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol

from msgspec.structs import replace

from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.kubernetes.cluster_cache import ClusterCache
from hostler.drivers.kubernetes.kube_api import Api
from hostler.drivers.kubernetes.kubeconfig import load_kubeconfig
from hostler.drivers.kubernetes.reflector import Patience
from hostler.drivers.kubernetes.scheduler import KubernetesScheduler
from hostler.drivers.kubernetes.workloads import GRACEFUL, INTERRUPTIBLE
from hostler.drivers.slurm.scheduler import SlurmMethod, SlurmScheduler
from hostler.ports import ConflictError, Scheduler, WorkloadView
from hostler.sim.emulated.emulated_scheduler import EmulatedScheduler, JobSpec
from hostler.sim.world.simulated_host import SimulatedHost
from hostler.sim.world.simulated_scheduler import SimulatedScheduler
from hostler.sim.world.virtual_clock import VirtualClock
from hostler.sim.world.world_context import Site
from tests.acts import an_act
from tests.contract.kubernetes_world import PATIENCE_S, Admin, an_admin, as_hostler, let_go, running, until
from tests.controlplane.plane import ControlPlane
from tests.kit import NOW, a_node
from tests.slurm import RealSlurm
from tests.slurm_twin import SlurmTwin

OWNER = "cell-a"
_SERIAL = itertools.count(1)
ANNOTATIONS = {WorkClass.interruptible: {INTERRUPTIBLE: "true"}, WorkClass.graceful: {GRACEFUL: "true"}}


class World(Protocol):
    """`node` is a member that is ready; `works` puts a customer's work on it; people use its own means."""

    node: Node

    @property
    def scheduler(self) -> Scheduler: ...

    async def works(self, kind: WorkClass) -> str: ...

    async def person_cordons(self) -> None: ...

    async def person_uncordons(self) -> None: ...


def operation(kind: str, node: Node, **args: Any) -> Operation:
    now = datetime.now(UTC)
    name = f"{node.id}-o{next(_SERIAL)}"
    return Operation(name, an_act(kind, **args), node.id, f"{node.id}-p1", 0, now, now + timedelta(seconds=60))


async def perform(world: World, kind: str, **args: Any) -> Outcome:
    return await world.scheduler.perform(operation(kind, world.node, **args), world.node)


async def observe(world: World, kind: str, **args: Any) -> str:
    return (await world.scheduler.observe(operation(kind, world.node, **args), world.node)).result


async def carry_out(world: World, kind: str, **args: Any) -> Outcome:
    """As the engine does it, until it is done: others write at the same time, and what a cluster shows is late."""
    asked, said = operation(kind, world.node, **args), None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while said is None or said.result != "done":
                if said is not None and said.result in ("unknown", "busy"):
                    said = await world.scheduler.observe(asked, world.node)
                else:
                    with contextlib.suppress(ConflictError):
                        said = await world.scheduler.perform(asked, world.node)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"in vain for: {kind} to be done; {said}") from None
    return said


def view(world: World) -> WorkloadView | None:
    seen = world.scheduler.views()
    return seen.nodes.get("box-1") if not seen.lost else None


async def sees(world: World, what: str, **fields: object) -> WorkloadView:
    """The view comes to have these values."""

    def holds() -> bool:
        seen = view(world)
        return seen is not None and all(getattr(seen, name) == value for name, value in fields.items())

    await until(holds, f"{what}; {view(world)}")
    seen = view(world)
    assert seen is not None
    return seen


def works_of(world: World) -> list[str]:
    seen = view(world)
    return [work.id for work in seen.workloads] if seen is not None else []


class EmulatedWorld:
    """The cluster in memory; each piece of work is a job of its own."""

    def __init__(self) -> None:
        self.node = replace(a_node("n1"), bindings=_bound("emulated"))
        self._specs: list[JobSpec] = []
        self._make()

    def _make(self) -> None:
        self.scheduler = EmulatedScheduler(self._specs)
        self.scheduler.alive = lambda _node: True
        self.scheduler.restore(replace(self.node, cordons=()))
        self.scheduler.turn(0.0)

    async def works(self, kind: WorkClass) -> str:
        self._specs.append(JobSpec("job", "train", "acme", 1, kind, 1e9))
        self._make()
        return self.scheduler.views().nodes["box-1"].workloads[-1].id

    async def person_cordons(self) -> None:
        self.scheduler.cordon("box-1", "somebody")

    async def person_uncordons(self) -> None:
        self.scheduler.open("box-1", "somebody")


class SimulatedWorld:
    """The scheduler of the simulated worlds, on which the proofs of the laws rest: one host in virtual time."""

    def __init__(self) -> None:
        self.node = replace(a_node("n1"), bindings=_bound("simulated"))
        self.site = Site(VirtualClock(NOW), 1, silence_s=30.0)
        self.host = SimulatedHost(self.site, "box-1", 1)
        self.host.start_running()
        self.scheduler = SimulatedScheduler(self.site, {"box-1": self.host})
        self.scheduler.seat("box-1").joined = True

    async def works(self, kind: WorkClass) -> str:
        work = Workload(f"w{next(_SERIAL)}", "acme", kind)
        self.scheduler.start("box-1", work)
        return work.id

    async def person_cordons(self) -> None:
        self.scheduler.cordon("box-1", "kubectl")

    async def person_uncordons(self) -> None:
        self.scheduler.open("box-1", "somebody with kubectl")


class KubernetesWorld:
    """A real API server."""

    def __init__(self, scheduler: KubernetesScheduler, admin: Admin, api: Api, cache: ClusterCache) -> None:
        self.api = api
        self.cache = cache
        self.node = replace(a_node("n1"), bindings=_bound("kubernetes"))
        self.scheduler = scheduler
        self.admin = admin

    async def works(self, kind: WorkClass, **meta: object) -> str:
        name = f"w{next(_SERIAL)}"
        annotations = ANNOTATIONS.get(kind, {})
        pod = await self.admin.pod("acme", name, "box-1", gpus=1, annotations=annotations, **meta)
        found = f"acme/{name}:{pod['metadata']['uid'][:8]}"
        await until(lambda: found in works_of(self), f"{found} to be seen")
        return found

    async def person_cordons(self) -> None:
        await self.admin.patch("/api/v1/nodes/box-1", {"spec": {"unschedulable": True}})

    async def person_uncordons(self) -> None:
        await self.admin.patch("/api/v1/nodes/box-1", {"spec": {"unschedulable": None}})


class SlurmWorld:
    """A Slurm, real or in memory."""

    def __init__(self, people: RealSlurm | SlurmTwin, scheduler: SlurmScheduler) -> None:
        self.node = replace(a_node("n1"), bindings=_bound("slurm"))
        self.scheduler = scheduler
        self._people = people

    async def works(self, kind: WorkClass) -> str:
        number = await self._people.submit("box-1", comment=f"hostler:{kind.value}")
        await until(lambda: f"job-{number}.0" in works_of(self), f"job {number} to be seen")
        return f"job-{number}.0"

    async def person_cordons(self) -> None:
        await self._people.admin("box-1", "DRAIN", "a fan is noisy")

    async def person_uncordons(self) -> None:
        await self._people.admin("box-1", "RESUME")


@asynccontextmanager
async def slurm_world(people: RealSlurm | SlurmTwin) -> AsyncIterator[SlurmWorld]:
    """A node in a Slurm cluster that is looked at all the time."""
    transport = people if isinstance(people, SlurmTwin) else people.transport()
    manner = SlurmMethod(period_s=0.05)
    world = SlurmWorld(people, SlurmScheduler("k1", transport, lambda: None, lambda: datetime.now(UTC), manner))
    async with running(world.scheduler.watch()):
        await until(lambda: view(world) and world.scheduler.views().ready.get("box-1"), "the node to be ready")
        yield world


def _bound(kind: str) -> tuple[Binding, ...]:
    return (Binding(kind, "box-1", NOW),)


@asynccontextmanager
async def kubernetes_world(plane: ControlPlane) -> AsyncIterator[KubernetesWorld]:
    """A node in a real cluster, seen and acted upon with the rights of our own manifest."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(an_admin(plane))
        hostler = await as_hostler(plane, admin)
        api = await stack.enter_async_context(Api(load_kubeconfig(str(hostler)), lambda: None))
        cache = ClusterCache(api, OWNER, Random(1).random, patience=Patience(landing_s=0.1))
        world = KubernetesWorld(KubernetesScheduler("k1", api, cache, OWNER), admin, api, cache)
        await admin.space("acme")
        await admin.node("box-1")
        await stack.enter_async_context(running(world.scheduler.watch()))
        await until(lambda: view(world) and world.scheduler.views().ready.get("box-1"), "the node to be ready")
        yield world
        await admin.clear("acme")
    let_go()
