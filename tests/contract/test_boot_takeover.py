"""A boot goes on where another controller takes over, and where a node restarts itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostler.app.boot_service import boot_key, shared_boot_key
from hostler.core.boot.secrets import DOOR, secret_of
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Operation
from hostler.core.state.operations import RestartNode
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.drivers.boot.network_reboot import NetworkReboot
from hostler.drivers.secrets.folder import SecretFolder
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.ports import RefusedError
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.boot.boot_answers import BootAnswers
from hostler.server.boot.boot_requests import BootRequests
from hostler.server.boot.image_catalogue import ImageCatalogue
from tests.contract.boot_world import KEY, MAC, SERIAL, BootWorld, boot_listening, boot_world


@asynccontextmanager
async def successor(world: BootWorld, key: bytes) -> AsyncIterator[str]:
    """The first controller is gone; another one of the cell has the journal, and this boot key."""
    await world.cell.stop()
    second = Cell(world.cell.journal, performers(Wiring((world.driver,))))
    world.driver.cell = second
    await second.start()
    try:
        requests = BootRequests(second, ImageCatalogue(world.images), key, world.driver.offers.get, world.tokens)
        async with boot_listening(BootAnswers(requests).answer, "127.0.0.1", 0) as url:
            yield url
    finally:
        await second.stop()


async def status(world: BootWorld, address: str) -> int:
    async with world.session.get(address) as answer:
        return answer.status


@pytest.mark.parametrize("shared", [True, False], ids=["the same key", "another key"])
async def test_a_takeover_between_script_and_data(tmp_path: Path, *, shared: bool) -> None:
    """Mutant: each controller makes a key of its own; then the second one refuses what the first one gave."""
    folder = tmp_path / "secrets/boot"
    folder.mkdir(parents=True)
    (folder / "key").write_text(KEY.hex() if shared else "ab" * 32)
    (folder / "key").chmod(0o600)
    key = await shared_boot_key("folder:boot", KeptSecrets({"folder": SecretFolder(tmp_path / "secrets")}, lambda: 0.0))
    async with boot_world(tmp_path) as world:
        await world.register()
        seed = await world.seed()
        async with successor(world, key) as url:
            answers = [await status(world, f"{url}{seed}{name}") for name in ("meta-data", "user-data", "user-data")]
            assert answers == ([200, 200, 403] if shared else [403, 403, 403])


async def test_a_takeover_between_loader_and_script(tmp_path: Path) -> None:
    """Mutant: what UEFI has shown is in the first controller's memory alone."""
    async with boot_world(tmp_path) as world:
        await world.register()
        door = world.endpoint().replace("/script", "/boot.efi")
        assert (await world.get(door, **{"User-Agent": "UefiHttpBoot/1.0"}))[0] == 200
        async with successor(world, KEY) as url:
            answer = await world.session.get(f"{url}/ipxe?mac={MAC}&serial={SERIAL}&arch=x86_64")
            assert "kernel" in await answer.text()


@pytest.mark.parametrize("written", ["", "short", "z" * 64, "ab" * 33])
async def test_a_boot_key_that_is_none_stops_the_start_and_is_not_told(tmp_path: Path, written: str) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot/key").write_text(written)
    (tmp_path / "boot/key").chmod(0o600)
    secrets = KeptSecrets({"folder": SecretFolder(tmp_path)}, lambda: 0.0)
    with pytest.raises(InvalidInputError) as refused:
        await shared_boot_key("folder:boot", secrets)
    assert not written or written not in str(refused.value)
    with pytest.raises(InvalidInputError, match="no such secret"):
        await shared_boot_key("folder:nothing", secrets)
    assert boot_key(tmp_path) == boot_key(tmp_path)


def reboot_of(world: BootWorld) -> tuple[NetworkReboot, Operation]:
    """The driver of reboots, and a reboot of the plan whose window is open."""
    driver, now = world.driver, datetime.now(UTC)
    handover = BootSecretHandover(driver, lambda: world.cell.view, KEY)
    operation = Operation("o1", RestartNode(), "n1", world.plan, 0, now, now + timedelta(seconds=60))
    return NetworkReboot(driver, handover), operation


async def test_a_node_that_restarts_itself_has_its_secret_first(tmp_path: Path) -> None:
    """Mutants: the agent reboots before the BMC has the secret; a reboot is given the secret of another plan."""
    async with boot_world(tmp_path) as world:
        node = await world.register()
        world.driver.given.clear()
        rebooter, operation = reboot_of(world)
        outcome = await rebooter.perform(operation, node)
        assert "its BMC has the secret of this boot" in outcome.detail
        assert secret_of(KEY, "n1", world.plan, DOOR) in world.driver.rebooted[0]
        assert secret_of(KEY, "n1", world.plan, DOOR) not in outcome.detail
        _, script = await world.script()
        assert "kernel" in script


async def test_a_node_whose_bmc_has_no_secret_is_not_restarted_into_being_held(tmp_path: Path) -> None:
    """Mutant: the agent reboots a machine that will be refused its boot."""
    async with boot_world(tmp_path) as world:
        node = await world.register()
        world.driver.has_http = False
        rebooter, operation = reboot_of(world)
        with pytest.raises(RefusedError, match="cannot be given the secret"):
            await rebooter.perform(operation, node)
        assert world.driver.rebooted == []


async def test_where_addresses_are_enough_a_reboot_goes_on_and_says_so(tmp_path: Path) -> None:
    async with boot_world(tmp_path, mac_only="true") as world:
        node = await world.register()
        world.driver.has_http = False
        rebooter, operation = reboot_of(world)
        assert "known by its MAC address alone" in (await rebooter.perform(operation, node)).detail
        assert world.driver.rebooted == [""]


async def test_a_node_that_boots_its_local_disk_is_left_its_boot_order(tmp_path: Path) -> None:
    """Mutant: every reboot sets the boot to the network."""
    async with boot_world(tmp_path, phases="{initializing: local-disk}") as world:
        node = await world.register()
        sets = world.driver.sets
        rebooter, operation = reboot_of(world)
        await rebooter.perform(operation, node)
        assert world.driver.sets == sets
