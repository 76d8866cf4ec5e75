"""The Hand's contract over Redfish: our emulated BMC on the wire and in virtual time, and OpenStack's emulator."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from socket import socket

import pytest

from hostler.core.state.bmc_certificate import CERTIFY
from hostler.core.state.bmc_login import RENEW
from hostler.core.state.operations import (
    FetchSystemImage,
    InstallSystemImage,
    RenewDpuLogin,
    WipeBmcLogin,
    WipeDpuLogin,
    kind_of,
)
from hostler.core.tables.operations import OPERATIONS
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.ports import PortError, RefusedError, UnreachableError
from tests.contract.redfish_world import SushyTools, World, a_hand, emulated, node_at, start_sushy_tools

pytestmark = pytest.mark.xdist_group("sushy-tools")
OURS = ("http", "https", "shared", "twin", "dell", "supermicro", "dgx_h100")
KINDS = {"chassis", "cpu", "drive", "gpu", "memory", "nic", "psu"}


@pytest.fixture(scope="module")
def sushy_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SushyTools]:
    folder: Path = tmp_path_factory.mktemp("sushy-tools")
    tools, process = start_sushy_tools(folder)
    try:
        yield tools
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(params=[*OURS, "sushy-tools"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Every world there is."""
    if request.param == "sushy-tools":
        async with request.getfixturevalue("sushy_tools").world() as made:
            yield made
    else:
        async with emulated(request.param) as made:
            yield made


@pytest.fixture(params=OURS)
async def our_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Builds each world that has what sushy-tools lacks."""
    async with emulated(request.param) as made:
        yield made


async def test_power_goes_on_and_off_again_and_each_is_seen(world: World) -> None:
    assert (await world.observe("power_on")).result == "not_done"
    assert (await world.perform("power_on")).result in {"unknown", "done"}
    on = await world.observe_until("done", "power_on")
    assert (on.result, on.facts["power"]) == ("done", "on")
    assert (await world.perform("power_off")).result in {"unknown", "done"}
    off = await world.observe_until("done", "power_off")
    assert (off.result, off.facts["power"]) == ("done", "off")


async def test_a_power_state_that_is_there_already_is_done(world: World) -> None:
    outcome = await world.perform("power_off")
    assert outcome.result == "done"
    assert "nothing was sent" in outcome.detail


async def test_power_is_read_with_the_identity(world: World) -> None:
    outcome = await world.observe("power_off")
    assert (outcome.result, outcome.facts["power"]) == ("done", "off")
    assert outcome.operation == "op-power_off"
    assert outcome.node == world.node.id


@pytest.mark.parametrize(("target", "shown"), [("pxe", "Pxe"), ("uefi_http", "UefiHttp")])
async def test_the_next_boot_is_from_the_network(world: World, target: str, shown: str) -> None:
    assert (await world.observe("set_boot_network", target=target)).result == "not_done"
    outcome = await world.perform("set_boot_network", target=target)
    if world.machine is None and target == "uefi_http":
        assert (outcome.result, outcome.facts["boot"]) == ("not_done", "Continuous Pxe"), (
            "it sets Pxe instead, and says so"
        )
        return
    assert outcome.result == "done"
    assert str(outcome.facts["boot"]).endswith(shown)
    assert (await world.observe("set_boot_network", target=target)).result == "done"


@pytest.mark.parametrize("kind", ["power_on", "power_off", "set_boot_network", "locate_on"])
async def test_another_machine_is_never_touched(world: World, kind: str) -> None:
    """Mutant: `check_identity` compares nothing."""
    stranger = World(world.driver, node_at(world.node.binding("bmc"), "SN-OF-ANOTHER"), world.pass_by)
    with pytest.raises(RefusedError, match=r"binding mismatch.*SN-OF-ANOTHER"):
        await stranger.perform(kind)
    with pytest.raises(RefusedError, match="binding mismatch"):
        await stranger.observe(kind)
    if world.machine:
        assert not world.machine.counts


async def test_the_locate_led_is_lit_and_darkened(world: World) -> None:
    assert (await world.perform("locate_on")).result == "done"
    assert (await world.observe("locate_on")).result == "done"
    assert (await world.perform("locate_off")).result == "done"
    assert (await world.observe("locate_on")).result == "not_done"


async def test_inventory_says_what_it_could_not_read(world: World) -> None:
    outcome = await world.perform("collect_inventory")
    assert outcome.result == "done"
    assert all(part.node == world.node.id and part.serial for part in outcome.parts)
    if world.machine is None:
        assert outcome.facts["complete"] is False
        assert "Storage" in str(outcome.facts["gaps"])
        assert [part.kind for part in outcome.parts if part.kind == "nic_port"] == ["nic_port"]
    else:
        assert outcome.facts["complete"] is True
        kinds = [part.kind for part in outcome.parts]
        assert [kinds.count(kind) for kind in ("gpu", "cpu", "memory", "drive", "nic")] == [8, 2, 32, 8, 8]
        assert set(str(outcome.facts["covers"]).split(",")) - {"module"} == KINDS
        assert outcome.facts["firmware.BIOS"] == "1.0.0"


async def test_what_a_bmc_does_not_offer_is_told_and_never_crashes(sushy_tools: SushyTools) -> None:
    async with sushy_tools.world() as world:
        said: list[str] = []
        needed = {
            "update_firmware": {"image": "http://127.0.0.1:9/x"},
            "eject_boot_medium": {"images": "http://127.0.0.1:9/m/"},
        }
        for kind in sorted(world.driver.kinds):
            try:
                outcome = await world.perform(kind, **needed.get(kind, {}))
            except PortError as error:
                said.append(str(error))
            else:
                assert outcome.result in {"done", "unknown", "failed"}
        assert all(len(words) > 20 for words in said)
        with pytest.raises(RefusedError, match=r"firmware inventory|404"):
            await world.verified(BIOS="2")


async def test_another_bmcs_readings_and_parts_are_looked_at_as_far_as_it_has_them(sushy_tools: SushyTools) -> None:
    async with sushy_tools.world() as world, Connections() as connections:
        clients = Clients(connections, lambda _: Access(timeout_s=30))
        look = await RedfishReader(clients).look(world.node)
        assert look.power == "off"
        assert any(name.endswith("_c") for name in (await look.sensors()).facts)
        read = await look.parts()
        assert read.facts["complete"] is False
        assert "Storage" in read.text
        with pytest.raises(RefusedError):
            await look.firmware()


async def test_firmware_is_written_then_runs_after_a_power_cycle(our_world: World) -> None:
    args = {"component": "bios", "version": "2.0.0", "image": our_world.image}
    assert (await our_world.observe("update_firmware", **args)).result == "not_done"
    sent = await our_world.perform("update_firmware", **args)
    assert sent.result == "unknown"
    await our_world.pass_by(1)
    writing = await our_world.observe("update_firmware", **args)
    assert (writing.result, writing.facts["bios"]) == ("unknown", "1.0.0")
    await our_world.pass_by(400)
    written = await our_world.observe("update_firmware", **args)
    assert (written.result, written.facts["staged"]) == ("done", True)
    assert (await our_world.verified(BIOS="2.0.0")).result == "failed"
    await our_world.perform("power_on")
    await our_world.observe_until("done", "power_on")
    verified = await our_world.verified(BIOS="2.0.0")
    assert (verified.result, verified.facts) == ("done", {"BIOS": "2.0.0"})
    assert (await our_world.perform("update_firmware", **args)).result == "done"
    assert our_world.ours.counts["SimpleUpdate"] == 1


async def test_a_second_update_is_not_sent_into_the_first(our_world: World) -> None:
    args = {"component": "BIOS", "version": "2.0.0", "image": our_world.image}
    await our_world.perform("update_firmware", **args)
    assert (await our_world.perform("update_firmware", **args)).result == "busy"
    assert our_world.ours.counts["SimpleUpdate"] == 1


async def test_the_bmc_is_reset_goes_away_and_comes_back(our_world: World) -> None:
    our_world.ours.start_powered()
    assert (await our_world.perform("reset_bmc")).result == "unknown"
    with pytest.raises(UnreachableError):
        await our_world.observe("reset_bmc")
    await our_world.pass_by(240)
    assert (await our_world.observe("reset_bmc")).result == "done"
    assert our_world.ours.power == "On"


async def test_the_driver_performs_every_kind_of_the_bmc_and_no_other(our_world: World) -> None:
    """Logins, certificates and a switch tray's own system have drivers of their own.

    Mutant: a row that no recipe asks for, or a kind that the driver has forgotten.
    """
    kept = (RenewDpuLogin, WipeBmcLogin, WipeDpuLogin, FetchSystemImage, InstallSystemImage)
    of_others = {RENEW, CERTIFY} | {kind_of(act) for act in kept}
    assert our_world.driver.kinds | of_others == {row.kind for row in OPERATIONS.values() if row.port == "bmc"}


async def test_operations_that_are_not_ours_or_lack_arguments_are_refused_with_help(our_world: World) -> None:
    with pytest.raises(RefusedError, match="no operation 'cordon'"):
        await our_world.perform("cordon")
    with pytest.raises(RefusedError, match="needs component and version"):
        await our_world.perform("update_firmware", component="BIOS", version="")
    with pytest.raises(RefusedError, match="BIOS needs an image"):
        await our_world.perform("update_firmware", component="BIOS", version="2")
    with pytest.raises(RefusedError, match="lists no firmware component 'FPGA'"):
        await our_world.perform("update_firmware", component="FPGA", version="1", image=our_world.image)


async def test_nobody_answering_is_unreachable() -> None:
    with closing(socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with a_hand() as driver:
            world = World(driver, node_at(address, "SN1"), asyncio.sleep)
            with pytest.raises(UnreachableError, match="gave no answer"):
                await world.perform("power_off")
