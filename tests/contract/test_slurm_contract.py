"""The Slurm driver's acts and views: on a real slurmctld by its commands, on the model, on the model behind REST."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hostler.core.state.assets import Binding
from hostler.core.state.customer_workloads import WorkClass
from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.slurm.cluster_view import MARK, OURS, PERSON, UNSEEN, Classes, Lens, is_drained, seen
from hostler.drivers.slurm.scheduler import SlurmMethod, SlurmScheduler
from hostler.drivers.slurm.transport import Transport
from hostler.drivers.slurm.wire import SlurmNode
from hostler.ports import ConflictError, RefusedError, UnreachableError, WorkloadView
from tests.acts import an_act
from tests.kit import NOW, a_node
from tests.slurm import RealSlurm
from tests.slurm_twin import SlurmTwin, by_rest, rest_app

ONE, TWO, THREE = "gpu001", "gpu002", "box-1"
LENS = Lens(Classes(partition={"spot": WorkClass.interruptible}))


class World(Struct):
    """A cluster, the way to it, and the driver. Time is the test's."""

    people: RealSlurm | SlurmTwin
    transport: Transport
    way: str
    began: Any = NOW
    now: Any = None
    fenced: bool = False
    scheduler: Any = None

    def __post_init__(self) -> None:
        self.now = self.now or self.began
        manner = SlurmMethod(LENS, requeue=self.way != "rest")
        self.scheduler = SlurmScheduler("k1", self.transport, self.fence, lambda: self.now, manner)

    def fence(self) -> None:
        if self.fenced:
            raise UnreachableError("the lease has run out; nothing was sent")

    async def view(self, name: str) -> WorkloadView:
        await self.scheduler.look()
        view: WorkloadView = self.scheduler.views().nodes[name]
        return view

    async def perform(self, kind: str, name: str, workloads: str = "", attempt: int = 1) -> Outcome:
        outcome: Outcome = await self.scheduler.perform(self.operation(kind, name, workloads, attempt), node(name))
        return outcome

    async def observe(self, kind: str, name: str, workloads: str = "", attempt: int = 1) -> Outcome:
        outcome: Outcome = await self.scheduler.observe(self.operation(kind, name, workloads, attempt), node(name))
        return outcome

    def operation(self, kind: str, name: str, workloads: str, attempt: int) -> Operation:
        args = {"workloads": workloads.split(",")} if workloads else {}
        base = Operation(f"o-{kind}", an_act(kind, **args), f"n-{name}", "p1", 0, self.began, self.began)
        return replace(base, attempt=attempt)

    async def state(self, name: str) -> SlurmNode:
        return await self.people.state(name)

    async def drained(self, name: str) -> bool:
        read = seen(await self.transport.nodes(), await self.transport.jobs())
        return is_drained(read.nodes[name], read.on(read.nodes[name]))

    async def until_done(self, kind: str, name: str, workloads: str = "") -> None:
        async def done() -> bool:
            return (await self.observe(kind, name, workloads)).result == "done"

        await self.eventually(done)

    async def reaches(self, name: str, holds: Callable[[SlurmNode], object]) -> SlurmNode:
        """The node's state once it is so."""

        async def so() -> bool:
            return bool(holds(await self.state(name)))

        await self.eventually(so)
        return await self.state(name)

    async def eventually(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Within a minute; in the model at once."""
        for _ in range(1 if isinstance(self.people, SlurmTwin) else 600):
            if await holds():
                return
            await asyncio.sleep(0.1)
        raise AssertionError("it never came so")


def node(name: str) -> Node:
    return a_node(f"n-{name}", bindings=(Binding("slurm", f"k1/{name}", NOW),))


@pytest.fixture(params=["commands", "twin", "rest"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if request.param == "commands":
        cluster: RealSlurm = request.getfixturevalue("slurm")
        yield World(cluster, cluster.transport(), request.param, datetime.now(UTC))
        return
    twin = SlurmTwin()
    async with AsyncExitStack() as stack:
        transport: Transport = twin
        if request.param == "rest":
            transport = await stack.enter_async_context(by_rest(rest_app(twin), tmp_path))
        yield World(twin, transport, request.param)


# what is seen


async def test_idle_nodes_are_free_ready_and_nobodys(world: World) -> None:
    view = await world.view(ONE)
    assert view == WorkloadView(ONE, (), "", cordoned=False)
    assert world.scheduler.views().ready == {ONE: True, TWO: True, THREE: True}
    assert world.scheduler.views().lost == ""
    assert await world.view(ONE) is view  # nothing changed: the same object


async def test_a_job_is_seen_on_each_of_its_nodes_with_its_owner_and_its_gpus(world: World) -> None:
    number = await world.people.submit(ONE, TWO, gpus=2)
    works = [(await world.view(name)).workloads for name in (ONE, TWO, THREE)]
    assert works[0] == works[1]
    (work,) = works[0]
    assert (work.id, work.job, work.tenant) == (f"job-{number}.0", f"job {number}", "root")
    assert (work.work_class, work.parts) == (WorkClass.uninterruptible, ("gpu0", "gpu1"))
    assert work.began is not None
    assert abs(datetime.now(UTC) - work.began) < timedelta(minutes=5)
    assert works[2] == ()


async def test_a_job_that_names_no_gpus_may_use_any(world: World) -> None:
    """Mutant: no GPUs named means that none is used."""
    await world.people.submit(ONE)
    assert (await world.view(ONE)).workloads[0].parts is None


async def test_the_owners_comment_counts_before_the_partition(world: World) -> None:
    await world.people.submit(ONE, partition="spot")
    await world.people.submit(TWO, partition="spot", comment="hostler:uninterruptible")
    await world.people.submit(THREE, comment="hostler:graceful")
    classes = [(await world.view(name)).workloads[0].work_class for name in (ONE, TWO, THREE)]
    assert classes == [WorkClass.interruptible, WorkClass.uninterruptible, WorkClass.graceful]


async def test_a_node_that_does_not_answer_is_never_idle(world: World) -> None:
    """Mutant: a node without listed jobs is free."""
    await world.people.stop_answering(ONE)
    view = await world.view(ONE)
    assert [work.id for work in view.workloads] == [UNSEEN]
    assert view.workloads[0].work_class is WorkClass.uninterruptible
    assert view.workloads[0].held_by  # nobody sends an eviction that could end nothing
    assert world.scheduler.views().ready[ONE] is False
    with pytest.raises(RefusedError, match="no job for what occupies"):
        await world.perform("evict", ONE, UNSEEN)


async def test_a_node_that_is_down_is_neither_ready_nor_drained(world: World) -> None:
    """`sinfo` calls DOWN+DRAIN "drained". Mutant: DRAIN without a job is enough to act."""
    await world.perform("cordon", ONE)
    assert await world.drained(ONE)
    await world.people.admin(ONE, "DOWN", f"{OURS} as if it were ours")
    assert not await world.drained(ONE)
    await world.view(ONE)
    assert world.scheduler.views().ready[ONE] is False


# keeping work away


async def test_a_cordon_drains_under_our_reason_and_work_goes_on(world: World) -> None:
    """DRAIN with a job is mixed+DRAIN; idle+DRAIN is drained. Mutant: DRAIN alone counts as drained."""
    number = await world.people.submit(ONE)
    assert (await world.perform("cordon", ONE)).result == "done"
    state = await world.state(ONE)
    assert state.base == "MIXED"
    assert "DRAIN" in state.flags
    assert state.reason == f"{OURS} cordon (o-cordon)"
    view = await world.view(ONE)
    assert (view.cordoned, view.cordoned_by_other, [work.job for work in view.workloads]) == (
        True,
        "",
        [f"job {number}"],
    )
    assert not await world.drained(ONE)
    await world.transport.cancel(number)
    await world.eventually(lambda: world.drained(ONE))


async def test_cordon_and_uncordon_may_be_repeated(world: World) -> None:
    for kind in ("uncordon", "cordon", "cordon", "uncordon", "uncordon"):
        assert (await world.perform(kind, ONE)).result == "done"
        assert (await world.observe(kind, ONE)).result == "done"
    state = await world.reaches(ONE, lambda state: not state.flags)  # after RESUME, slurmd has to register anew
    assert (state.base, state.reason, state.comment) == ("IDLE", "", "")


async def test_what_is_not_so_yet_is_not_done(world: World) -> None:
    assert (await world.observe("cordon", ONE)).result == "not_done"
    await world.perform("cordon", ONE)
    assert (await world.observe("uncordon", ONE)).result == "not_done"


async def test_the_drain_of_another_is_named_and_stays(world: World) -> None:
    """Mutants: our reason is written over theirs; RESUME without a look at whose drain it is."""
    await world.people.admin(ONE, "DRAIN", "bad fan, ask Ann")
    cordoned = await world.perform("cordon", ONE)
    assert (cordoned.result, "root: bad fan, ask Ann" in cordoned.detail) == ("done", True)
    view = await world.view(ONE)
    assert (view.cordoned, view.cordoned_by_other) == (None, "root: bad fan, ask Ann")
    assert not await world.drained(ONE)
    uncordoned = await world.perform("uncordon", ONE)
    assert (uncordoned.result, "root: bad fan, ask Ann" in uncordoned.detail) == ("done", True)
    state = await world.state(ONE)
    assert ("DRAIN" in state.flags, state.reason, state.comment) == (True, "bad fan, ask Ann", "")


async def test_a_down_that_an_administrator_wants_stays_too(world: World) -> None:
    """A drain over it, and its end, would bring the node back. Mutant: only DRAIN can be another's."""
    await world.people.admin(ONE, "DOWN", "on fire")
    assert (await world.perform("cordon", ONE)).result == "done"
    assert (await world.perform("uncordon", ONE)).result == "done"
    state = await world.state(ONE)
    assert (state.base, state.reason) == ("DOWN", "on fire")


async def test_a_drain_that_somebody_took_over_is_theirs(world: World) -> None:
    await world.perform("cordon", ONE)
    await world.people.admin(ONE, "DRAIN", "NHC: check_fs_mount")
    assert (await world.perform("uncordon", ONE)).result == "done"
    state = await world.state(ONE)
    assert ("DRAIN" in state.flags, state.reason, state.comment) == (True, "NHC: check_fs_mount", "")


async def test_a_persons_resume_is_told_until_we_act_again(world: World) -> None:
    """Also by a controller that has just started: Slurm keeps the mark. Mutant: only a drain seen before counts."""
    await world.perform("cordon", ONE)
    assert (await world.view(ONE)).overridden == ""
    await world.people.admin(ONE, "RESUME")
    fresh = World(world.people, world.transport, world.way)
    view = await fresh.view(ONE)
    assert (view.overridden, view.cordoned) == (PERSON, False)
    assert (await fresh.perform("cordon", ONE)).result == "done"
    assert fresh.scheduler.views().nodes[ONE].overridden == ""  # at once, without another look
    assert (await world.perform("uncordon", ONE)).result == "done"
    assert (await world.view(ONE)).overridden == ""
    await world.people.admin(ONE, "DRAIN", "x")
    await world.people.admin(ONE, "RESUME")
    assert (await world.view(ONE)).overridden == ""  # their own drain, and their own end of it


async def test_a_comment_that_is_somebodys_own_is_kept(world: World) -> None:
    await world.people.comment(ONE, "rack 7")
    try:
        await world.perform("cordon", ONE)
        assert (await world.state(ONE)).comment == "rack 7"
        await world.perform("uncordon", ONE)
        assert (await world.state(ONE)).comment == "rack 7"
    finally:
        await world.people.comment(ONE, "")


async def test_a_node_that_fell_by_itself_gets_our_drain_and_comes_back_with_its_end(world: World) -> None:
    """A node that fell by itself might come back by itself in the middle of a repair."""
    await world.people.boot(ONE)
    await world.reaches(ONE, lambda state: state.base == "DOWN")
    view = await world.view(ONE)
    assert (view.cordoned, view.cordoned_by_other) == (False, "")
    assert (await world.perform("cordon", ONE)).result == "done"
    state = await world.state(ONE)
    assert (state.base, "DRAIN" in state.flags, state.reason.startswith(OURS)) == ("DOWN", True, True)
    assert (await world.perform("uncordon", ONE)).result == "done"
    assert (await world.state(ONE)).base == "IDLE"


async def test_nothing_is_sent_behind_the_fence(world: World) -> None:
    world.fenced = True
    with pytest.raises(UnreachableError, match="nothing was sent"):
        await world.perform("cordon", ONE)
    assert (await world.state(ONE)).flags == frozenset()


@pytest.mark.parametrize("name", ["ALL", "all", "gpu[001-003]", "gpu001,gpu002", "-h", "gpu001 State=DOWN", "a;b", ""])
async def test_a_name_means_one_node(name: str) -> None:
    """`scontrol update NodeName=ALL` drains the cluster. Mutant: names are passed on as they are bound."""
    world = World(twin := SlurmTwin(), twin, "twin")
    bound = a_node("n", bindings=(Binding("slurm", name or " ", NOW),))
    with pytest.raises(RefusedError, match="not the name of one Slurm node"):
        await world.scheduler.perform(world.operation("cordon", "x", "", 1), bound)
    assert twin.sent == []


async def test_an_unknown_node_is_refused_with_advice(world: World) -> None:
    with pytest.raises(RefusedError, match=r"lists no node gpu999: add NodeName=gpu999"):
        await world.perform("cordon", "gpu999")


# ending work


async def test_only_the_named_run_is_ended_and_what_may_is_requeued(world: World) -> None:
    """Mutants: every job on the node is ended; the run's number is not looked at."""
    first = await world.people.submit(ONE, partition="spot", requeue="")
    other = await world.people.submit(ONE, partition="spot")
    assert (await world.perform("evict", ONE, f"job-{first}.7")).result == "done"  # another run
    assert set(world.people.listing().split()) == {str(first), str(other)}
    assert (await world.perform("evict", ONE, f"job-{first}.0")).result in ("done", "unknown", "busy")
    await world.until_done("evict", ONE, f"job-{first}.0")
    assert world.people.listing().split() == [str(other)]
    if isinstance(world.people, SlurmTwin):
        assert world.people.sent == [f"{'cancel' if world.way == 'rest' else 'requeue'} {first}"]
    else:
        assert "Restarts=1" in world.people.run("scontrol", "show", "job", str(first))


async def test_what_slurm_may_not_requeue_is_cancelled(world: World) -> None:
    number = await world.people.submit(ONE, partition="spot", no_requeue="")
    await world.perform("evict", ONE, f"job-{number}.0")
    await world.until_done("evict", ONE, f"job-{number}.0")
    if isinstance(world.people, RealSlurm):
        assert "JobState=CANCELLED" in world.people.run("scontrol", "show", "job", str(number))


async def test_a_graceful_job_is_told_first_and_ended_when_its_grace_is_over(world: World) -> None:
    """Mutant: SIGTERM and the end go out together."""
    number = await world.people.submit(ONE, comment="hostler:graceful", script="deaf", no_requeue="")
    run = f"job-{number}.0"
    assert (await world.perform("evict", ONE, run)).result == "busy"
    await world.people.until(lambda: world.people.signals(number) == 1)
    world.now = world.began + timedelta(seconds=59)
    assert (await world.observe("evict", ONE, run)).result == "busy"
    world.now = world.began + timedelta(seconds=61)
    assert (await world.observe("evict", ONE, run)).result == "not_done"
    assert str(number) in world.people.listing()
    await world.perform("evict", ONE, run, attempt=2)
    assert (await world.observe("evict", ONE, run, attempt=2)).result in ("busy", "done")
    if isinstance(world.people, RealSlurm):
        await world.until_done("evict", ONE, run)


async def test_a_job_that_ends_holds_its_node_until_it_has(world: World) -> None:
    """Mutant: COMPLETING counts as gone."""
    number = await world.people.submit(ONE, script="slow", no_requeue="")
    await world.transport.cancel(number)

    async def ending() -> bool:
        return [work.held_by for work in (await world.view(ONE)).workloads] == ["Slurm is ending it"]

    await world.eventually(ending)
    assert (await world.observe("evict", ONE, f"job-{number}.0")).result == "busy"
    if isinstance(world.people, RealSlurm):
        world.people.let_go(number)
        await world.until_done("evict", ONE, f"job-{number}.0")


# membership


async def test_leaving_and_joining(world: World) -> None:
    assert (await world.perform("cordon", ONE)).result == "done"
    assert (await world.observe("leave_cluster", ONE)).result == "not_done"
    assert (await world.perform("leave_cluster", ONE)).result == "done"
    await world.scheduler.look()
    assert ONE not in world.scheduler.views().nodes
    assert (await world.observe("join_cluster", ONE)).result == "not_done"
    for kind in ("uncordon", "cordon"):
        with pytest.raises(RefusedError, match="let it join first"):
            await world.perform(kind, ONE)
    assert (await world.perform("join_cluster", ONE)).result == "done"
    view = await world.view(ONE)
    assert (view.listed, view.cordoned) == (True, True)
    assert (await world.perform("uncordon", ONE)).result == "done"
    await world.reaches(ONE, lambda state: not state.flags)
    assert await world.view(ONE) == WorkloadView(ONE, (), "", cordoned=False)


async def test_nobody_leaves_while_a_job_is_there(world: World) -> None:
    number = await world.people.submit(ONE)
    with pytest.raises(ConflictError, match=f"still has job {number}"):
        await world.perform("leave_cluster", ONE)
    assert str(number) in world.people.listing()
    assert (await world.state(ONE)).flags == frozenset()


async def test_a_node_whose_slurmd_is_silent_has_not_joined_yet(world: World) -> None:
    await world.people.stop_answering(ONE)
    joined = await world.perform("join_cluster", ONE)
    assert (joined.result, "does not answer" in joined.detail) == ("unknown", True)


# reboots that Slurm does


async def test_slurm_reboots_only_what_is_drained_for_us(world: World) -> None:
    """Mutant: what is drained may be rebooted, whoever drained it."""
    if world.way == "rest":
        with pytest.raises(RefusedError, match="commands"):
            await world.transport.reboot(ONE, "x")
        return
    with pytest.raises(RefusedError, match="is idle, not idle and drained by us"):
        await world.perform("reboot", ONE)
    await world.people.admin(TWO, "DRAIN", "bad fan")
    with pytest.raises(RefusedError, match="root: bad fan"):
        await world.perform("reboot", TWO)
    await world.people.submit(THREE)
    await world.perform("cordon", THREE)
    with pytest.raises(RefusedError, match="is mixed"):
        await world.perform("reboot", THREE)


@pytest.mark.parametrize("world", ["commands", "twin"], indirect=True)
async def test_after_slurms_reboot_the_node_is_still_ours(world: World) -> None:
    """The node stays DOWN for us. Mutant: nextstate=RESUME, with which Slurm ends our drain by itself."""
    await world.perform("cordon", ONE)
    assert (await world.perform("reboot", ONE)).result in ("busy", "done")
    await world.until_done("reboot", ONE)
    assert "REBOOT_ISSUED" in (await world.state(ONE)).flags
    with pytest.raises(ConflictError, match="is rebooting"):
        await world.perform("uncordon", ONE)
    await world.view(ONE)
    assert ONE not in world.scheduler.views().ready
    await world.people.boot(ONE)
    state = await world.reaches(ONE, lambda state: "REBOOT_ISSUED" not in state.flags)
    assert (state.base, state.reason.startswith(OURS), state.comment) == ("DOWN", True, MARK)
    view = await world.view(ONE)
    assert (view.cordoned, view.overridden) == (True, "")
    assert (await world.perform("uncordon", ONE)).result == "done"
    assert (await world.view(ONE)).cordoned is False
