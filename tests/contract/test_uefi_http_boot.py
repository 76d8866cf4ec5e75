"""UEFI that boots by HTTP itself shows the secret of its BMC and no more; its boot loader says who the machine is."""

from pathlib import Path

import pytest

from hostler.core.boot.secrets import DOOR, secret_of
from tests.contract.boot_world import KEY, LOADER, MAC, SERIAL, BootWorld, boot_world

UEFI = {"User-Agent": "UefiHttpBoot/1.0"}
OTHER = "52:54:00:00:00:99"


async def loaded(world: BootWorld) -> tuple[int, str]:
    """Reads what the address of the BMC gives to UEFI."""
    return await world.get(world.endpoint().replace("/script", "/boot.efi"), **UEFI)


@pytest.mark.parametrize("wrong", ["secret", "an earlier boot", "another node"])
async def test_a_secret_that_is_not_of_this_boot_loads_nothing(tmp_path: Path, wrong: str) -> None:
    """Mutants: the loader is given for any secret; the refusal is not recorded."""
    async with boot_world(tmp_path) as world:
        await world.register()
        secret = {
            "secret": "0" * 32,
            "an earlier boot": secret_of(KEY, "n1", f"{world.plan}0", DOOR),
            "another node": secret_of(KEY, "n2", world.plan, DOOR),
        }[wrong]
        status, _ = await world.get(f"/n/n1/{secret}/boot.efi", **UEFI)
        assert status == 403
        assert [event.what for event in world.told("boot_refused")] == ["loader"]
        _, script = await world.script("/ipxe")
        assert "kernel" not in script


async def test_outside_the_boot_window_the_loader_is_refused(tmp_path: Path) -> None:
    """Mutant: a secret opens as long as its plan runs."""
    async with boot_world(tmp_path) as world:
        await world.register()
        await loaded(world)
        seed = await world.seed()
        assert (await world.get(f"{seed}user-data"))[0] == 200
        assert await world.post(seed.replace("/ci/", "/home")) == 200
        await world.until(lambda node: node.phase == "onboard")
        assert (await loaded(world))[0] == 403
        assert "outside its boot window" in world.told("boot_refused")[-1].reason


async def test_uefi_gets_the_loader_and_the_loader_is_known_by_its_address(tmp_path: Path) -> None:
    """Mutants: the loader is known anywhere; it is known without its UEFI having shown the secret."""
    async with boot_world(tmp_path) as world:
        await world.register()
        _, before = await world.script("/ipxe")
        assert "MAC address alone" in before
        for _ in range(3):
            assert await loaded(world) == (200, LOADER.decode())
        assert len([b for b in world.told("boot_answered") if b.boot.kind == "loader"]) == 1
        _, script = await world.script("/ipxe")
        assert "kernel" in script
        assert (world.booted.identity, world.booted.kind) == ("bmc", "image")
        assert (await loaded(world))[0] == 403  # a boot that was answered is not answered again
        _, again = await world.script("/ipxe")
        assert "kernel" not in again


async def test_another_address_is_known_by_its_mac_alone(tmp_path: Path) -> None:
    """Mutant: whoever asks after the loader was given is the machine."""
    async with boot_world(tmp_path) as world:
        await world.register()
        await loaded(world)
        _, script = await world.script("/ipxe", via="127.0.0.2")
        assert "MAC address alone" in script
        assert "kernel" in (await world.script("/ipxe"))[1]


@pytest.mark.parametrize("shown", [{"mac": OTHER}, {"serial": "SN-n2"}], ids=["mac", "serial"])
async def test_a_loader_on_another_machine_gets_nothing(tmp_path: Path, shown: dict[str, str]) -> None:
    """Mutant: the address alone makes the machine the expected one. A stranger is recorded as one."""
    async with boot_world(tmp_path) as world:
        await world.register()
        await loaded(world)
        _, script = await world.script("/ipxe", **shown)
        assert "kernel" not in script
        refused = [event.reason for event in world.told("boot_refused")]
        strangers = [one.mac for one in world.cell.view.cell.strangers]
        assert (refused, strangers) == (([], [OTHER]) if "mac" in shown else ([refused[0]], []))


async def test_a_machine_that_is_held_is_still_known_when_it_asks_again(tmp_path: Path) -> None:
    """Mutant: the record of the hold takes the place of what its UEFI has shown."""
    async with boot_world(tmp_path) as world:
        await world.register()
        await loaded(world)
        (world.images / "vmlinuz").rename(world.images / "away")
        assert "cannot be served" in (await world.script("/ipxe"))[1]
        (world.images / "away").rename(world.images / "vmlinuz")
        assert "kernel" in (await world.script("/ipxe"))[1]


async def test_ipxe_in_the_adapter_gets_its_script_at_the_same_address(tmp_path: Path) -> None:
    """Mutant: a loader that UEFI has fetched is taken to have an address; the one in the adapter has one."""
    async with boot_world(tmp_path) as world:
        await world.register()
        door = world.endpoint().removesuffix("script")
        _, script = await world.get(f"{door}boot.efi", **{"User-Agent": "iPXE/1.21.1"})
        assert script.startswith("#!ipxe")
        assert "dhcp" not in script
        _, beside = await world.get(f"{door}autoexec.ipxe")
        assert beside.replace(":ask\ndhcp || goto retry\n", ":ask\n") == script != beside


async def test_the_architecture_is_told_from_the_request(tmp_path: Path) -> None:
    """Mutants: every machine gets the same loader; a loader that was changed is served."""
    async with boot_world(tmp_path) as world:
        assert await world.get("/loader/x86_64.efi") == (200, LOADER.decode())
        assert (await world.get("/loader/arm64.efi"))[0] == 404
        assert (await world.get("/loader/..%2fvmlinuz.efi"))[0] == 404
        (world.images / "ipxe.efi").write_bytes(b"another")
        assert (await world.get("/loader/x86_64.efi"))[0] == 404
        await world.register()
        await world.get(world.endpoint().replace("/script", "/boot.efi"), **UEFI)
        _, script = await world.get(f"/ipxe?mac={MAC}&serial={SERIAL}&arch=arm64")
        assert "kernel" not in script
