"""Cords that a person pulls: the driver sends nothing, and only a BMC that was without power counts."""

from datetime import timedelta

import pytest

from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import Machine
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import START, World, a_machine, emulated

UNTOLD = RequestFaultRule("/redfish/v1/Managers/*", "GET", patch={"LastResetTime": None}, times=0)
DARK = timedelta(minutes=2)


def sent(machine: Machine) -> int:
    return sum(machine.counts.values())


async def begun(world: World) -> None:
    """The technician was asked, and nothing has come of it yet."""
    assert (await world.perform("unplug")).result == "unknown"
    assert (await world.observe("unplug")).result == "unknown"


@pytest.mark.parametrize("tells", [True, False], ids=["tells its restart", "tells none"])
async def test_a_machine_without_power_for_a_while_is_seen_and_nothing_is_sent(tells: bool) -> None:
    """Mutants: the BMC is reset so that it restarts; the answer after the ask is done."""
    async with emulated("twin", a_machine(), () if tells else (UNTOLD,)) as world:
        await begun(world)
        await world.pass_by(3 * 3600)
        assert (await world.observe("unplug")).result == "unknown"
        world.ours.lose_mains(START + timedelta(hours=3), DARK)
        with pytest.raises(UnreachableError):
            await world.observe("unplug")
        await world.pass_by(500)
        assert (await world.observe("unplug")).result == "done"
        assert sent(world.ours) == 0


async def test_the_cords_of_a_machine_that_runs_are_not_asked_for() -> None:
    machine = a_machine()
    machine.start_powered()
    async with emulated("twin", machine) as world:
        with pytest.raises(RefusedError, match="cords are pulled with the machine off"):
            await world.perform("unplug")


async def test_a_network_that_is_away_for_a_poll_is_no_restart() -> None:
    """Of a BMC that tells no restart. Mutants: any absence counts; two short ones add up to a long one."""
    async with emulated("twin", a_machine(), (UNTOLD,)) as world:
        await begun(world)
        for _ in range(3):
            world.faults.add(RequestFaultRule("/redfish/v1/Systems/*", drop="before"))
            with pytest.raises(UnreachableError):
                await world.observe("unplug")
            await world.pass_by(40)
            assert (await world.observe("unplug")).result == "unknown"
            await world.pass_by(40)


@pytest.mark.parametrize(("seconds", "result"), [(4, "unknown"), (-4, "unknown"), (600, "done"), (-9e8, "done")])
async def test_a_moment_that_creeps_is_no_restart_and_a_clock_that_begins_anew_is(seconds: float, result: str) -> None:
    """Mutants: another moment is a restart; only a later one is."""
    async with emulated("twin", a_machine()) as world:
        await begun(world)
        world.ours.manager_reset_at += timedelta(seconds=seconds)
        assert (await world.observe("unplug")).result == result


async def test_a_process_that_did_not_ask_goes_by_the_record() -> None:
    """Mutants: what this process has not seen before is a restart; only what it has seen is."""
    async with emulated("twin", a_machine()) as world:
        world.ours.manager_reset_at = START - timedelta(days=2)
        assert (await world.observe("unplug")).result == "unknown", "the operation was recorded a day ago"
        world.ours.manager_reset_at = START
        assert (await world.observe("unplug")).result == "done"
