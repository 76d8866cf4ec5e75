"""Zap's lies: each thing that a BMC tells of its firmware and that is not so, over HTTP and in virtual time."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from hostler.drivers.redfish import wire_firmware
from hostler.ports import RefusedError, UnreachableError
from hostler.sim.bmc.emulated_machine import Machine, Quirks, gpu_server, make_image
from tests.contract.redfish_world import World, a_machine, emulated

DC: dict[str, Any] = {"component": "BIOS", "version": "2.0.0", "good": ("2.0.0",), "activates": "dc_cycle"}


@pytest.fixture(params=["http", "twin"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def running(**quirks: object) -> Machine:
    machine = a_machine(quirks=Quirks(**quirks))  # type: ignore[arg-type]
    machine.start_powered()
    return machine


async def written(world: World, **more: Any) -> str:
    """Send the update and observe it for ten minutes; the last result that came."""
    args = {**DC, "image": world.image} | more
    seen = await world.perform("update_firmware", **args)
    for _ in range(60):
        if seen.result not in ("unknown", "busy"):
            break
        await world.pass_by(10)
        try:
            seen = await world.observe("update_firmware", **args)
        except UnreachableError:
            continue
    return seen.result


async def cycled(world: World) -> None:
    await world.perform("power_off")
    await world.observe_until("done", "power_off")
    await world.perform("power_on")
    await world.observe_until("done", "power_on")


async def test_what_is_listed_nowhere_before_it_runs_is_written_by_its_task_and_true_by_its_version(
    backend: str,
) -> None:
    """Most BMCs list nothing staged. Mutant: what does not show before the reset was not written."""
    async with emulated(backend, running(unstaged=True)) as world:
        assert await written(world) == "done"
        assert (await world.verified(BIOS="2.0.0")).result == "failed"
        await cycled(world)
        assert (await world.verified(BIOS="2.0.0")).result == "done"


async def test_success_that_is_reported_and_not_true_is_found_behind_the_reset(backend: str) -> None:
    """Mutant: a task that says done is believed."""
    async with emulated(backend, running(lies_about=frozenset({"BIOS"}))) as world:
        assert await written(world) == "done"
        await cycled(world)
        verified = await world.verified(BIOS="2.0.0")
        assert (verified.result, verified.detail) == ("failed", "BIOS is 1.0.0, wanted 2.0.0")


@pytest.mark.parametrize("how", ["taskless", "forgets_tasks"])
async def test_an_update_without_a_task_to_ask_is_told_by_its_version(backend: str, how: str) -> None:
    async with emulated(backend, running(**{how: True})) as world:
        assert await written(world) == "done"
        await cycled(world)
        assert (await world.verified(BIOS="2.0.0")).result == "done"
        assert world.ours.counts["SimpleUpdate"] == 1


async def test_a_bmc_that_is_away_after_its_own_update_is_waited_for(backend: str) -> None:
    async with emulated(backend, running()) as world:
        image = world.image.replace("/BIOS/", "/BMC/")
        assert await written(world, component="BMC", image=image, activates="none") == "done"
        assert (await world.verified(BMC="2.0.0")).result == "done"


async def test_a_write_in_the_wrong_power_state_is_refused_in_the_bmcs_words_and_taken_in_the_right_one(
    backend: str,
) -> None:
    async with emulated(backend, running(needs_off=frozenset({"BIOS"}))) as world:
        with pytest.raises(RefusedError, match="cannot be updated while the power state is On"):
            await world.perform("update_firmware", image=world.image, **DC)
        await world.perform("power_off")
        await world.observe_until("done", "power_off")
        assert await written(world) == "done"


async def test_a_version_that_is_missing_until_the_bmc_is_reset_shows_after_it(backend: str) -> None:
    """Mutants: a BMC that lists everything is reset too; one that does not is left as it is."""
    async with emulated(backend, running(hides=frozenset({"BIOS"}))) as world:
        assert (await world.perform("reset_bmc", unless_listed=("BIOS", "BMC"))).result == "done"
        assert not world.ours.counts["Manager.Reset"], "all are listed"
        await written(world)
        await cycled(world)
        assert (await world.verified(BIOS="2.0.0")).detail == "BIOS is not listed, wanted 2.0.0"
        assert (await world.perform("reset_bmc", unless_listed=("BIOS", "BMC"))).result == "unknown"
        await world.pass_by(240)
        assert (await world.verified(BIOS="2.0.0")).result == "done"


async def test_a_version_that_flaps_between_looks_never_counts(backend: str) -> None:
    """Mutants: one right reading is enough; a wrong one in between is forgotten."""
    async with emulated(backend, running(flaps=frozenset({"BIOS"}))) as world:
        await written(world)
        await cycled(world)
        verified = await world.verified(BIOS="2.0.0")
        assert (verified.result, "read right in between" in verified.detail) == ("failed", True)


async def test_a_url_that_the_bmc_refuses_is_refused_in_its_words(backend: str) -> None:
    async with emulated(backend, running(refuses_images=True)) as world:
        with pytest.raises(RefusedError, match="not of an acceptable location"):
            await world.perform("update_firmware", image=world.image, **DC)


@pytest.mark.parametrize("push", [False, True])
async def test_an_image_with_other_bytes_than_the_baseline_says_is_offered_to_no_bmc(backend: str, push: bool) -> None:
    """Mutants: nobody compares; it is compared after the BMC was told."""
    async with emulated(backend, running()) as world:
        with pytest.raises(RefusedError, match="it was offered to no BMC"):
            await world.perform("update_firmware", image=world.image, sha256="0" * 64, push=push, **DC)
        assert not world.ours.counts
        right = hashlib.sha256(make_image("BIOS", "2.0.0")).hexdigest()
        assert await written(world, sha256=right.upper(), push=push) == "done"


async def test_an_image_that_nobody_serves_is_offered_to_no_bmc() -> None:
    async with emulated("http", running()) as world:
        for image in ("http://127.0.0.1:9/none", "tftp://images/BIOS"):
            with pytest.raises(RefusedError):
                await world.perform("update_firmware", **DC | {"image": image, "sha256": "0" * 64})
        assert not world.ours.counts


@pytest.fixture
async def pushed(backend: str) -> AsyncIterator[World]:
    async with emulated(backend, running()) as world:
        yield world


async def test_an_image_is_pushed_where_that_is_asked_for(pushed: World) -> None:
    """Mutants: it is fetched all the same; the body is no multipart; another component is written."""
    assert await written(pushed, push=True) == "done"
    assert pushed.ours.firmware_staged == {"BIOS": "2.0.0"}
    assert next(iter(pushed.ours.tasks.values())).image == "pushed"


@pytest.mark.parametrize("vendor", ["gh200", "gb200", "nvswitch"])
async def test_a_bmc_that_takes_pushes_only_is_pushed_to(vendor: str) -> None:
    """Mutant: without SimpleUpdate nothing is written."""
    machine = running(vendor=vendor)
    async with emulated(vendor, machine) as world:
        component = {"nvswitch": "MGX_FW_BMC_0"}.get(vendor, "HGX_FW_BMC_0")
        image = world.image.replace("/BIOS/", "/BMC/")
        assert await written(world, component=component, image=image, activates="none") == "done"
        assert machine.firmware["BMC"] == "2.0.0"


@pytest.mark.parametrize(
    ("version", "more", "why"),
    [
        ("0.9.0", {}, "1.0.0 is newer than the baseline 0.9.0"),
        ("1.0-rc", {}, "cannot be ordered against"),
        ("2.0.0", {"needs": {"BMC": "1.5.0"}}, "BIOS 2.0.0 needs BMC 1.5.0; BMC runs 1.0.0"),
        ("2.0.0", {"needs": {"CPLD": "1"}}, "CPLD runs an unknown version"),
    ],
)
async def test_what_may_not_be_written_over_what_runs_is_refused(
    backend: str, version: str, more: dict[str, str], why: str
) -> None:
    async with emulated(backend, running()) as world:
        image = world.image.replace("2.0.0", version)
        with pytest.raises(RefusedError, match=why):
            await world.perform(
                "update_firmware", **DC | {"version": version, "good": (version,), "image": image} | more
            )
        assert not world.ours.counts


async def test_a_downgrade_that_the_baseline_asks_for_is_written(backend: str) -> None:
    async with emulated(backend, running()) as world:
        older = {"version": "0.9.0", "good": ("0.9.0",), "image": world.image.replace("2.0.0", "0.9.0")}
        assert await written(world, **older, downgrade=True) == "done"


async def test_what_is_allowed_beside_the_baseline_or_passed_already_is_left_as_it_is(backend: str) -> None:
    async with emulated(backend, running()) as world:
        assert await written(world, good=("2.0.0", "1.0.0")) == "done"
        assert await written(world, version="0.5.0", at_least="0.5.0") == "done"
        assert (await world.verified(BIOS=("2.0.0", "1.0.0"))).result == "done"
        assert not world.ours.counts


async def test_a_spare_image_is_no_version_that_runs(backend: str) -> None:
    """Mutant: the backup's version counts as the component's."""
    async with emulated(backend, running(recovery={"BMC": "2.0.0"})) as world:
        assert (await world.verified(BMC="2.0.0")).result == "failed"
        facts = (await world.perform("collect_inventory")).facts
        assert (facts["firmware.BMC"], facts["recovery.BMC"]) == ("1.0.0", "2.0.0")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("BMC-Backup", ("BMC", "recovery")),
        ("Golden_BIOS", ("BIOS", "recovery")),
        ("Staging_BMC", ("BMC", "staged")),
        ("BMC-Primary", ("BMC-Primary", "")),
        ("backup", ("backup", "")),
        ("HGX_FW_GPU_0", ("HGX_FW_GPU_0", "")),
    ],
)
def test_entries_that_are_named_for_their_image_are_told_apart(name: str, role: tuple[str, str]) -> None:
    assert wire_firmware.image_role(name) == role


BASEBOARD = ("HMC", "Retimer", "HGX_FW_ERoT_GPU_SXM_1", "HGX_FW_PCIeSwitch_0", "HGX_FW_PCIeRetimer_3", "EROT_BIOS_0")
"""Components of an HGX baseboard and of a DGX; the last four as NVIDIA's BMC software and captures name them."""


@pytest.mark.parametrize("component", BASEBOARD)
async def test_root_of_trust_switch_and_retimer_are_components_like_others(backend: str, component: str) -> None:
    """Mutants: entries of a root of trust are passed over as its chassis are; one component's image is another's."""
    hardware = replace(gpu_server("SN1"), firmware=dict.fromkeys(BASEBOARD, "1.0.0"), staged=frozenset(BASEBOARD))
    machine = a_machine(hardware=hardware)
    machine.start_powered()
    async with emulated(backend, machine) as world:
        image = world.image.replace("/BIOS/", f"/{component}/")
        assert await written(world, component=component, image=image) == "done"
        await cycled(world)
        assert (await world.verified(**{component: "2.0.0"})).result == "done"
        assert machine.firmware == dict.fromkeys(BASEBOARD, "1.0.0") | {component: "2.0.0"}


async def test_what_runs_after_mains_only_runs_after_an_ac_cycle_and_that_begins_with_the_machine_off(
    backend: str,
) -> None:
    async with emulated(backend, running(needs_ac=frozenset({"BIOS"}))) as world:
        await written(world)
        with pytest.raises(RefusedError, match="begins with the machine off"):
            await world.perform("ac_cycle")
        await cycled(world)
        assert world.ours.firmware["BIOS"] == "1.0.0"
        await world.perform("power_off")
        await world.observe_until("done", "power_off")
        assert (await world.perform("ac_cycle")).result == "unknown"
        with pytest.raises(UnreachableError):
            await world.observe("ac_cycle")
        await world.pass_by(240)
        assert (await world.observe("ac_cycle")).result == "done"
        await world.perform("power_on")
        await world.observe_until("done", "power_on")
        assert (await world.verified(BIOS="2.0.0")).result == "done"


async def test_a_bmc_without_an_ac_cycle_says_what_to_do() -> None:
    async with emulated("dell") as world:
        with pytest.raises(RefusedError, match="offers no AC cycle: record the machine's outlets"):
            await world.perform("ac_cycle")
