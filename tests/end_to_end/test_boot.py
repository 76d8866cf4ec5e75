"""Day 0 on a machine: from power-on to Onboard by itself, with a real boot loader, kernel and boot network."""

from pathlib import Path
from typing import Any

import pytest

from tests.boot_guest import (
    BIOS,
    FROM_MEDIUM,
    IPXE_EFI,
    LOCAL_DISK,
    UEFI,
    UEFI_HTTP,
    UEFI_MEDIUM,
    build_disk,
    missing,
    no_medium,
)
from tests.end_to_end.booted import DEADLINE_S, MAC, SERIAL, BootedWorld, booted_world
from tests.newer_ipxe import newer_ipxe

pytestmark = [
    pytest.mark.nightly("machines boot in QEMU"),
    pytest.mark.xdist_group("boot"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "it boots"),
]

HISTORY = (
    "registered as this",
    "set_boot_network done",
    "power_on requested",
    "boots image production in its boot window, known by the secret given to its BMC",
    "cloud-init data given",
    "seed refused",
    "phoned home",
    "initializing → onboard",
)


async def register(world: BootedWorld, **more: Any) -> None:
    spec = {"id": "n1", "sku": "this", "serial": SERIAL, "macs": [MAC], "bmc": world.origin, **more}
    await world.call("POST", "/v1/nodes", {"nodes": [spec], "reason": "the machine was delivered"})


def needs_newer_ipxe() -> Path:
    """A boot loader that looks for its script where it was started from."""
    found = newer_ipxe()
    if found is None:
        pytest.skip("no iPXE of 2021 or newer: on Debian apt-get update, then it is fetched of a later release")
    return found


@pytest.mark.parametrize("firmware", [pytest.param(BIOS, marks=pytest.mark.smoke), UEFI, UEFI_HTTP])
async def test_a_machine_that_is_powered_on_comes_to_onboard_by_itself(tmp_path: Path, firmware: str) -> None:
    """Mutants: the seed is given twice; a phone-home moves nothing; the secret of the boot is not asked for."""
    async with booted_world(tmp_path, firmware) as world:
        await register(world)
        found = await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1")
        boot = found["node"]["boot"]
        assert (boot["kind"], boot["image"], boot["identity"]) == ("image", "production", "bmc")
        await world.guest.ended()
        assert world.guest.starts == 1
        console = world.guest.console()
        assert "guest: got user-data" in console
        assert "guest: replay refused" in console
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        loader = any("its UEFI fetched the boot loader for x86_64" in text for text in told)
        assert loader == (firmware == UEFI_HTTP)
        steps = [next(n for n, text in enumerate(told) if text.startswith(begin)) for begin in HISTORY]
        assert steps == sorted(steps), told


@pytest.mark.skipif(bool(no_medium()), reason=no_medium() or "it boots")
@pytest.mark.parametrize("firmware", FROM_MEDIUM)
async def test_a_machine_whose_bmc_keeps_no_address_boots_from_a_medium(tmp_path: Path, firmware: str) -> None:
    """The adapter has no boot loader: what runs comes from the drive, by one image for BIOS and UEFI. Mutants: the
    script on the medium is of no boot; it asks before it has an address; the medium stays in."""
    loader = needs_newer_ipxe() if firmware == UEFI_MEDIUM else IPXE_EFI
    async with booted_world(tmp_path, firmware, loader=loader) as world:
        await register(world)
        found = await world.until(
            lambda seen: seen["node"]["phase"] == "onboard" and seen["node"]["medium"] is None, "/v1/nodes/n1"
        )
        boot = found["node"]["boot"]
        assert (boot["kind"], boot["image"], boot["identity"]) == ("image", "production", "bmc")
        await world.guest.ended()
        assert "guest: got user-data" in world.guest.console()
        assert world.machine.media == {}
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        assert any("its boot medium is read from 127.0.0.1" in text for text in told), told


async def test_a_loader_that_looks_beside_its_address_is_known_by_the_secret_there(tmp_path: Path) -> None:
    """DHCP names an address that leads nowhere. Mutants: no script is beside the address; it asks without a network."""
    async with booted_world(tmp_path, UEFI_HTTP, loader=needs_newer_ipxe()) as world:
        world.guest.dhcp = "http://10.0.2.2:9/nothing"
        await register(world)
        found = await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1")
        assert (found["node"]["boot"]["kind"], found["node"]["boot"]["identity"]) == ("image", "bmc")
        console = world.guest.console()
        assert "autoexec.ipxe... ok" in console
        assert "guest: got user-data" in console


@pytest.mark.skipif(bool(no_medium()), reason=no_medium() or "it boots")
@pytest.mark.parametrize("firmware", [BIOS, UEFI])
async def test_where_the_configuration_says_so_a_machine_boots_its_local_disk(tmp_path: Path, firmware: str) -> None:
    """Mutant: the script that is to give way to the disk waits at the boot loader, or begins the network boot anew."""
    loader = needs_newer_ipxe() if firmware == UEFI else None
    async with booted_world(tmp_path, firmware, phases="{initializing: local-disk}") as world:
        world.guest.disk = tmp_path / "disk"
        build_disk(world.guest.disk, loader)
        await register(world)
        shown = await world.until(lambda seen: seen["node"]["boot"] is not None, "/v1/nodes/n1")
        assert (shown["node"]["boot"]["kind"], shown["node"]["boot"]["identity"]) == ("local-disk", "bmc")
        await world.guest.says(LOCAL_DISK, DEADLINE_S)
        if firmware == UEFI:  # what iPXE writes under BIOS is not on the serial port
            assert "Hostler boots the local disk" in world.guest.console()


async def test_another_machine_behind_the_bmc_is_loaded_and_then_refused(tmp_path: Path) -> None:
    """Mutant: what UEFI has shown makes the machine the expected one, whatever its serial number."""
    async with booted_world(tmp_path, UEFI_HTTP) as world:
        world.guest.serial = "SN-SWAPPED"
        await register(world)
        shown = await world.until(lambda seen: bool((seen["node"]["boot"] or {}).get("refused")), "/v1/nodes/n1")
        assert shown["node"]["phase"] == "initializing"
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        assert any(f"serial number 'SN-SWAPPED' is shown, '{SERIAL}' is expected" in text for text in told), told


async def test_a_stranger_is_recorded_shown_and_booted_into_nothing(tmp_path: Path) -> None:
    """Mutant: whoever asks from the boot network gets the image of somebody."""
    async with booted_world(tmp_path) as world:
        world.guest.mac, world.guest.serial = "52:54:00:99:99:99", "SN-STRANGER"
        await world.guest.power_on(world.boot.replace("127.0.0.1", "10.0.2.2") + "/ipxe")
        shown = await world.until(lambda seen: bool(seen["strangers"]), "/v1/status")
        assert [(one["mac"], one["serial"]) for one in shown["strangers"]] == [("52:54:00:99:99:99", "SN-STRANGER")]
        assert "SN-STRANGER" in str(world.command("boot", "strangers"))
        assert "guest: seed" not in world.guest.console()


async def test_a_machine_that_is_switched_on_by_hand_after_its_boot_is_given_nothing_more(tmp_path: Path) -> None:
    """The address that its BMC has is of a boot that is over. Mutant: a secret opens until the next is made."""
    async with booted_world(tmp_path) as world:
        await register(world)
        await world.until(lambda seen: seen["node"]["phase"] == "onboard", "/v1/nodes/n1")
        await world.guest.ended()
        await world.guest.power_on(world.machine.booted_uri)
        shown = await world.until(lambda seen: seen["node"]["boot"]["refused"] >= 2, "/v1/nodes/n1")
        assert shown["node"]["phase"] == "onboard"
        told = [row["text"] for row in world.command("node", "history", "n1")["items"]]
        assert any("the secret is not that of this boot" in text for text in told), told
        assert "guest: seed" not in world.guest.console()
