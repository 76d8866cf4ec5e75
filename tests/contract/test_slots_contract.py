"""The contract of idle checks, asked of a real Kubernetes with its own scheduler, and of clusters in memory."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from hostler.core.state.customer_workloads import WorkClass, Workload
from hostler.core.state.model import Verdict
from hostler.ports import RefusedError
from tests.contract.kubernetes_world import until, until_asked
from tests.contract.slot_world import EmulatedSlots, SimulatedSlots, SlotWorld, ends, kubernetes_slots
from tests.kit import a_node

pytestmark = pytest.mark.xdist_group("kubernetes")


IN_MEMORY: dict[str, type[EmulatedSlots | SimulatedSlots]] = {"emulated": EmulatedSlots, "simulated": SimulatedSlots}


@pytest.fixture(params=["kubernetes", "emulated", "simulated"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[SlotWorld]:
    if request.param in IN_MEMORY:
        yield IN_MEMORY[request.param]()
        return
    async with kubernetes_slots(request.getfixturevalue("control_plane")) as found:
        yield found


def works(world: SlotWorld) -> tuple[Workload, ...]:
    return world.scheduler.views().nodes["box-1"].workloads


@pytest.mark.parametrize("verdict", [Verdict.passed, Verdict.failed])
async def test_a_check_says_what_it_found(world: SlotWorld, verdict: Verdict) -> None:
    """Mutant: a check that ended is a check that passed."""
    operation = world.check(verdict)
    assert (await world.scheduler.perform(operation, world.node)).result == "unknown"
    said = await ends(world, operation)
    assert (said.result, said.facts["verdict"]) == ("done", verdict.value)
    if verdict is Verdict.failed:
        assert said.detail == "gpu3: it computes otherwise"


async def test_a_check_that_runs_is_shown_as_ours_and_as_nobodys_work(world: SlotWorld) -> None:
    """Mutant: our own check makes its node busy, so that everybody waits for it."""
    operation = world.check(None)
    await world.scheduler.perform(operation, world.node)
    await until(lambda: works(world), "the check to be seen")
    assert [(w.work_class, w.check) for w in works(world)] == [(WorkClass.infrastructure, operation.id)]
    assert (await world.scheduler.observe(operation, world.node)).result == "unknown"


async def test_asked_for_twice_it_is_one_check(world: SlotWorld) -> None:
    """A controller that was cut off asks again. Mutant: the second is another Job."""
    operation = world.check(None)
    for _ in range(2):
        assert (await world.scheduler.perform(operation, world.node)).result == "unknown"
    await until(lambda: works(world), "the check to be seen")
    assert len(works(world)) == 1


async def test_a_customer_who_comes_takes_its_place_and_it_is_inconclusive(world: SlotWorld) -> None:
    """Mutants: the customer waits for the check; the check is told as failed, or begins anew beside the customer."""
    operation = world.check(None)
    await world.scheduler.perform(operation, world.node)
    await until(lambda: works(world), "the check to be seen")
    customer = await world.wants()
    said = await ends(world, operation)
    assert (said.result, said.facts["verdict"]) == ("done", "inconclusive")
    assert "pre-empted" in said.detail
    await until(lambda: [w for w in works(world) if w.id.startswith(customer)], "the customer to run")
    assert [w for w in works(world) if w.check] == []


async def test_a_check_that_is_called_off_leaves_the_node(world: SlotWorld) -> None:
    """Mutant: it goes on, and a remedy meets it. It may be called off twice."""
    operation = world.check(None)
    await world.scheduler.perform(operation, world.node)
    await until(lambda: works(world), "the check to be seen")
    for _ in range(2):
        await world.scheduler.revoke(operation, world.node)
    await until(lambda: not works(world), "it to be gone")

    async def unknown_here() -> bool:  # its Job and its pod are told of by two watches
        return (await world.scheduler.observe(operation, world.node)).result == "not_done"

    await until_asked(unknown_here, "nothing to be known of it")


async def test_of_a_check_that_was_never_begun_nothing_is_known(world: SlotWorld) -> None:
    operation = world.check(None)
    assert (await world.scheduler.observe(operation, world.node)).result == "not_done"
    await world.scheduler.revoke(operation, world.node)


async def test_a_node_that_is_not_listed_is_not_checked(world: SlotWorld) -> None:
    operation = replace(world.check(None), node="stranger")
    with pytest.raises(RefusedError, match="lists no node stranger"):
        await world.scheduler.perform(operation, a_node("stranger"))
