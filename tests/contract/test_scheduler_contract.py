"""The contract of `ports.Scheduler`, asked of a real Kubernetes and Slurm, and of clusters in memory."""

from collections.abc import AsyncIterator

import pytest

from hostler.core.state.customer_workloads import WorkClass
from hostler.ports import RefusedError
from tests.contract.kubernetes_world import until
from tests.contract.scheduler_world import (
    EmulatedWorld,
    SimulatedWorld,
    World,
    carry_out,
    kubernetes_world,
    observe,
    perform,
    sees,
    slurm_world,
    view,
)
from tests.kit import a_node
from tests.slurm_twin import SlurmTwin

pytestmark = pytest.mark.xdist_group("kubernetes")

IN_MEMORY: dict[str, type[EmulatedWorld | SimulatedWorld]] = {"emulated": EmulatedWorld, "simulated": SimulatedWorld}


@pytest.fixture(params=["kubernetes", "emulated", "simulated", "slurm", "slurm-twin"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param in IN_MEMORY:
        yield IN_MEMORY[request.param]()
        return
    if request.param.startswith("slurm"):
        people = request.getfixturevalue("slurm") if request.param == "slurm" else SlurmTwin()
        async with slurm_world(people) as world:
            yield world
        return
    async with kubernetes_world(request.getfixturevalue("control_plane")) as found:
        yield found


async def test_a_cordon_is_ours_until_it_is_lifted_and_may_be_asked_for_twice(world: World) -> None:
    """Mutants: the second cordon fails; an uncordon leaves it."""
    await sees(world, "no cordon", cordoned=False)
    assert await observe(world, "cordon") == "not_done"
    for _ in range(2):
        assert (await perform(world, "cordon")).result == "done"
    assert await observe(world, "cordon") == "done"
    await sees(world, "the cordon", cordoned=True, overridden="")
    for _ in range(2):
        assert (await perform(world, "uncordon")).result == "done"
    assert await observe(world, "uncordon") == "done"
    await sees(world, "no cordon", cordoned=False)


async def test_work_is_told_by_its_class_and_evicted_by_its_id_alone(world: World) -> None:
    """Mutants: all work of the node goes; the class is not read."""
    gone = await world.works(WorkClass.interruptible)
    seen = await sees(world, "the work")
    assert [(w.id, w.work_class, w.held_by) for w in seen.workloads] == [(gone, WorkClass.interruptible, "")]
    assert (await perform(world, "evict", workloads=["another"])).result == "done"
    assert await observe(world, "evict", workloads=[gone]) == "not_done"
    await carry_out(world, "evict", workloads=[gone])
    await until(lambda: gone not in [w.id for w in (view(world) or seen).workloads], "the work to be gone")


async def test_what_a_person_lifts_is_told_as_an_override_and_not_as_our_cordon(world: World) -> None:
    """Mutants: the taint alone counts; once lifted it counts as ours when somebody asks what came of the cordon."""
    await perform(world, "cordon")
    await sees(world, "the cordon", cordoned=True)
    await world.person_uncordons()
    seen = await sees(world, "the override", cordoned=False)
    assert seen.overridden.startswith("somebody")
    assert await observe(world, "cordon") == "not_done"
    assert await observe(world, "uncordon") == "not_done"
    await carry_out(world, "uncordon")
    await sees(world, "nothing of ours", cordoned=False, overridden="")
    for _ in range(2):  # the second time over what a lift has left
        await carry_out(world, "cordon")
        await sees(world, "our cordon again", cordoned=True, overridden="")
        await world.person_uncordons()
        await sees(world, "the override again", cordoned=False)


async def test_a_cordon_of_somebody_else_is_named_and_only_its_owner_ends_it(world: World) -> None:
    """Mutants: an uncordon of ours opens the node; who ends their own cordon overrides us."""
    await world.person_cordons()
    await until(lambda: (seen := view(world)) and seen.cordoned_by_other, "their cordon")
    for kind in ("cordon", "uncordon"):
        await carry_out(world, kind)
        seen = view(world)
        assert seen is not None
        assert seen.cordoned_by_other
    await world.person_uncordons()
    await sees(world, "an open node", cordoned_by_other="", cordoned=False, overridden="")


async def test_a_node_leaves_and_joins_cordoned(world: World) -> None:
    """Mutant: it joins open, though it may be listed already, and work lands on it before it was checked."""
    assert await observe(world, "leave_cluster") == "not_done"
    for _ in range(2):
        assert (await perform(world, "leave_cluster")).result == "done"
    assert await observe(world, "leave_cluster") == "done"
    assert await observe(world, "join_cluster") == "not_done"
    await until(lambda: view(world) is None, "the node to be gone")
    assert (await perform(world, "join_cluster")).result in ("done", "unknown")
    await sees(world, "it to be listed", cordoned=True)
    assert (await perform(world, "uncordon")).result == "done"
    await sees(world, "it to be open", cordoned=False)
    assert (await perform(world, "join_cluster")).result in ("done", "unknown")
    await sees(world, "it to be shut", cordoned=True)


async def test_who_is_not_listed_cannot_be_cordoned_and_has_nothing_to_lift(world: World) -> None:
    """Mutant: a cordon of nobody is done."""
    world.node = a_node("stranger")
    with pytest.raises(RefusedError, match="lists no node stranger"):
        await perform(world, "cordon")
    assert (await perform(world, "uncordon")).result == "done"
    assert (await perform(world, "leave_cluster")).result == "done"
