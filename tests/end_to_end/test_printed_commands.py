"""Sequences on a real `serve` with three machines, each typed by following what is printed, word for word.

Each ends with every machine in production again (`all_serve`): what is printed leads there, and no two printed lines
in a row are refused.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.three_machines import MACHINES, SOUND, Person, ThreeMachines, three_machines

pytestmark = pytest.mark.nightly("a controller, three agents and some hundred commands are processes of their own")


@pytest.fixture(params=[True, False], ids=["may act", "may not act"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ThreeMachines]:
    async with three_machines(tmp_path, may_act=request.param) as found:
        yield found
        await found.all_serve()


async def test_a_cordon_and_its_end(world: ThreeMachines) -> None:
    async def sequence(person: Person, name: str) -> None:
        await person.asks(f"hostler node cordon {name} --reason …")
        await person.obeys(f"hostler node call-off {name} --what cordon --reason …", name)
        await person.asks(f"hostler node cordon {name} --wait --reason …")
        await person.asks(f"hostler node uncordon {name} --reason …")

    await world.on_each(sequence)


@pytest.mark.smoke
async def test_a_cordon_of_all_machines_is_followed_to_its_end(world: ThreeMachines) -> None:
    names = " ".join(MACHINES)
    await world.ann.asks(f"hostler node cordon {names} --wait --reason …")
    assert world.ann.printed.count(" done ") == len(MACHINES), world.ann.printed
    for name in MACHINES:
        assert await world.is_closed(name), f"{name} is open though its cordon is done"
    await world.ann.asks(f"hostler node call-off {names} --what cordon --reason …")


async def test_a_drain_waits_for_work_and_ends(world: ThreeMachines) -> None:
    async def sequence(person: Person, name: str) -> None:
        job = await world.work_on(name)
        await person.asks(f"hostler node drain {name} --reason …")
        await person.says(f"job {job}", name)
        await world.twin.cancel(job)
        await person.until(name, lambda node: node["plan"] is None, "drained")

    await world.on_each(sequence)


async def test_a_reboot_is_done_or_refused_with_what_to_do(world: ThreeMachines) -> None:
    """Refused, it has touched nothing."""

    async def sequence(person: Person, name: str) -> None:
        before = await person.node(name)
        if name != SOUND and not world.may_act:
            said = await person.is_refused(f"hostler node reboot {name} --wait --reason …")
            assert "--allow-actions" in said
            after = await person.node(name)
            assert (after["phase"], after["cordons"]) == (before["phase"], before["cordons"])
            return
        granted = await person.type(f"hostler node reboot {name} --wait --reason …")
        assert granted == world.may_act, person.printed

    await world.on_each(sequence)


async def test_maintenance_without_work(world: ThreeMachines) -> None:
    async def sequence(person: Person, name: str) -> None:
        await person.asks(f"hostler node return-for-maintenance {name} --reason …")
        await person.until_phase(name, "triage")
        await person.obeys(f"hostler node end-work {name} --reason …", name)
        await person.walks_back(name)

    await world.on_each(sequence)
