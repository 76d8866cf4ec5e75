"""Boot media over a running cell: who may read one and when, and that none stays in a drive whatever is cut off."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from msgspec.structs import replace

from hostler.app.boot_service import BootService, boot_service, media_tls
from hostler.app.controller_process import Gate
from hostler.app.start_settings import ServeSettings
from hostler.core.boot.ipxe import ROOM_FOR_SCRIPT
from hostler.core.boot.secrets import DOOR, MEDIUM, secret_of
from hostler.core.state import boot_medium
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Phase
from hostler.core.state.verbs.nodes import ClearCondition
from hostler.core.state.verbs.tickets import CloseTicket
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.drivers.boot.network_reboot import NetworkReboot
from hostler.drivers.secrets.folder import SecretFolder
from hostler.runtime.performers import Wiring, performers
from hostler.runtime.runner import Cell
from hostler.server.boot.boot_answers import BootAnswers
from hostler.server.boot.boot_requests import BootRequests
from hostler.server.boot.image_catalogue import ImageCatalogue
from hostler.sim.bmc.tls_certificates import Certificate, self_signed
from tests.contract.boot_world import KEY, MEDIA, BootWorld, boot_listening, boot_world, media_listening
from tests.contract.boot_world import MEDIUM as IMAGE

PLACE = IMAGE.index(ROOM_FOR_SCRIPT)
BMC = "127.0.0.9"


@asynccontextmanager
async def a_world(folder: Path, **more: str) -> AsyncIterator[BootWorld]:
    """A cell with boot media, whose BMC keeps no address and has a virtual drive."""
    async with boot_world(folder, None, **{"media": MEDIA, **more}) as world:
        world.driver.has_http, world.driver.has_drive, world.driver.honest = False, True, True
        yield world


async def read(world: BootWorld, path: str = "", via: str = BMC, **headers: str) -> tuple[int, bytes]:
    """The medium as its BMC reads it."""
    status, text = await world.get(path or urlsplit(world.driver.drive).path, via, **headers)
    return status, text.encode()


async def come_home(world: BootWorld) -> None:
    """The machine boots from its medium, and phones home."""
    _, medium = await read(world)
    again = next(line for line in medium.decode().splitlines() if line.startswith("set base")).split()[2]
    _, script = await world.script(urlsplit(again).path)
    seed = urlsplit(next(w for w in script.split() if w.startswith("hostler.seed=")).partition("=")[2]).path
    assert (await world.get(f"{seed}user-data"))[0] == 200
    assert await world.post(seed.replace("/ci/", "/home")) == 200


async def test_a_boot_from_a_medium_to_onboard(tmp_path: Path) -> None:
    """Mutants: the medium is not ejected after the boot; a boot by medium counts as one by MAC address; the script of
    one boot is laid at one place only; a secret is recorded or told."""
    async with a_world(tmp_path) as world:
        await world.register()
        status, medium = await read(world)
        assert (status, len(medium)) == (200, len(IMAGE))
        assert ROOM_FOR_SCRIPT not in medium
        assert medium.count(b"set base ") == 2
        assert medium.count(secret_of(KEY, "n1", world.plan, DOOR).encode()) == 2
        plan = world.plan
        await come_home(world)
        node = await world.until(lambda n: n.phase is Phase.onboard and n.medium is None)
        assert (world.driver.drive, world.driver.ejects, world.booted.identity) == ("", 1, "bmc")
        assert node.aside is None
        told = [repr(record) for record in world.cell.journal.records()]
        assert not any(secret_of(KEY, "n1", plan, purpose) in line for line in told for purpose in (DOOR, MEDIUM))
        assert [event.address for event in world.told("boot_medium_read")] == [BMC]


async def test_what_a_bmc_reads_in_parts_is_one_medium(tmp_path: Path) -> None:
    """Mutants: a part begins with the script; a part across its end has none of it; each part is recorded."""
    async with a_world(tmp_path) as world:
        await world.register()
        _, whole = await read(world)
        bounds = [0, 1, PLACE - 1, PLACE + 7, PLACE + 2047, PLACE + 2049, 260_000, len(IMAGE)]
        parts = [await read(world, Range=f"bytes={a}-{b - 1}") for a, b in pairwise(bounds)]
        assert {status for status, _ in parts} == {206}
        assert b"".join(part for _, part in parts) == whole
        assert (await read(world, Range=f"bytes={len(IMAGE)}-"))[0] == 416
        assert (await read(world, Range="bytes=-7"))[1] == b"the end"
        assert len(world.told("boot_medium_read")) == 1


async def test_only_the_first_reader_reads_on(tmp_path: Path) -> None:
    """Mutant: whoever learns the address from a BMC reads the secret of the boot."""
    async with a_world(tmp_path) as world:
        await world.register()
        assert (await read(world))[0] == 200
        assert (await read(world, via="127.0.0.77"))[0] == 403
        assert [(one.what, one.address) for one in world.told("boot_refused")] == [("medium", "127.0.0.77")]
        assert (await read(world))[0] == 200


async def test_a_medium_is_read_in_its_window_alone(tmp_path: Path) -> None:
    """Mutants: a door's secret opens the medium; the image itself is public."""
    async with a_world(tmp_path) as world:
        await world.register()
        path = urlsplit(world.driver.drive).path
        door = path.replace(secret_of(KEY, "n1", world.plan, MEDIUM), secret_of(KEY, "n1", world.plan, DOOR))
        assert (await read(world, door))[0] == 403
        assert (await read(world, "/images/boot.iso"))[0] == 404
        await come_home(world)
        await world.until(lambda n: n.phase is Phase.onboard)
        assert (await read(world, path))[0] == 403


async def test_a_bmc_that_takes_https_alone_reads_its_medium_there_and_nothing_else(tmp_path: Path) -> None:
    """Mutants: what boot loaders fetch is served there too; whoever comes second reads on."""
    certificate = self_signed(datetime.now(UTC))
    async with a_world(tmp_path) as world:
        await world.register()
        medium = urlsplit(world.driver.drive).path
        async with media_listening(
            BootAnswers(world.requests).answer, "127.0.0.1", 0, certificate.server_context()
        ) as there:
            (status, whole), (second, _) = [
                await by_tls(there + medium, via, certificate) for via in (BMC, "127.0.0.77")
            ]
            assert (status, second, whole.count(b"set base ")) == (200, 403, 2)
            door = f"/n/n1/{secret_of(KEY, 'n1', world.plan, DOOR)}"
            for path in (
                "/ipxe",
                f"{door}/script",
                f"{door}/boot.efi",
                "/images/vmlinuz",
                "/loader/x86_64.efi",
                "/images/boot.iso",
            ):
                assert (await by_tls(there + path, BMC, certificate))[0] == 404
        assert [event.address for event in world.told("boot_medium_read")] == [BMC]


async def by_tls(address: str, via: str, certificate: Certificate) -> tuple[int, bytes]:
    connector = aiohttp.TCPConnector(local_addr=(via, 0), ssl=certificate.client_context())
    async with aiohttp.ClientSession(connector=connector) as session, session.get(address) as answer:
        return answer.status, await answer.read()


def test_media_by_https_need_a_certificate(tmp_path: Path) -> None:
    """Mutant: the listener begins, and each handshake fails."""
    (tmp_path / "images").mkdir()
    settings = ServeSettings(data=str(tmp_path), boot_images=str(tmp_path / "images"), boot_media=("127.0.0.1", 0))
    for wrong in (settings, replace(settings, tls_cert=str(tmp_path / "none.pem"))):
        with pytest.raises(InvalidInputError, match="--boot-media-listen: no certificate for it"):
            BootService(KEY, wrong, Gate())
    certificate = self_signed(datetime.now(UTC))
    pem = tmp_path / "both.pem"
    pem.write_bytes(certificate.certificate + certificate.key)
    assert media_tls(replace(settings, tls_cert=str(pem))).cert_store_stats()


async def test_a_bmc_that_keeps_an_address_is_given_no_medium(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        world.driver.has_http = True
        await world.register()
        assert (world.driver.drive, "boot.efi" in world.driver.given["n1"]) == ("", True)


@pytest.mark.parametrize("allowed", [True, False])
async def test_where_no_drive_takes_it_the_boot_is_by_mac_or_refused(tmp_path: Path, *, allowed: bool) -> None:
    """Mutants: the machine is powered on all the same; the refusal tells the secret; it leads to triage."""
    async with a_world(tmp_path, mac_only=str(allowed).lower()) as world:
        world.driver.has_drive = False
        if allowed:
            await world.register()
            assert world.driver.given["n1"] == ""
        else:
            await world.enter()
            node = await world.until(lambda _: world.told("ticket_opened"))
            assert node.phase is not Phase.triage, "refused, it has touched nothing"
            assert [one.ticket.kind for one in world.told("ticket_opened")] == ["refused"]
            assert not world.driver.on
        said = " ".join(event.detail for event in world.told("operation_finished"))
        assert "no virtual drive takes" in said
        plan = world.told("boot_medium_due")[0].plan
        assert secret_of(KEY, "n1", plan, MEDIUM) not in said


async def test_an_eject_that_is_refused_is_tried_again_and_shown(tmp_path: Path) -> None:
    """Mutant: one refusal, and the medium stays for ever unseen."""
    async with a_world(tmp_path) as world:
        await world.register()
        world.driver.refuses_eject = 1
        await come_home(world)
        node = await world.until(lambda n: n.medium is not None and n.medium.failures == 1)
        assert node.medium is not None
        assert (node.medium.result, node.medium.detail, node.medium.given_up) == (
            "refused",
            "the medium is in use",
            False,
        )
        assert node.medium.again_at is not None
        assert world.driver.drive


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_S", "MOST_S"):
        monkeypatch.setattr(boot_medium, name, 0.01)


@pytest.mark.usefixtures("quick")
async def test_a_bmc_that_refuses_ejects_is_a_condition_until_the_medium_is_seen_gone(tmp_path: Path) -> None:
    """Mutants: what is given up is told nobody; a person's word ends it unseen; a medium that is gone is shown on."""
    async with a_world(tmp_path) as world:
        await world.register()
        world.driver.refuses_eject = 1_000
        await come_home(world)
        node = await world.until(lambda n: any(c.type == boot_medium.EJECT_FAILED for c in n.conditions))
        (condition,) = [c for c in node.conditions if c.type == boot_medium.EJECT_FAILED]
        assert "stays in a virtual drive (refused: the medium is in use)" in condition.evidence[-1].text
        assert dict(condition.evidence[-1].facts) == {"failures": boot_medium.TRIES_MOST, "result": "refused"}
        (ticket,) = await world.tickets("n1", 1)
        assert (ticket.fault, ticket.owner) == (boot_medium.EJECT_FAILED, "operator")
        tried = world.driver.ejects
        await world.ask(CloseTicket(), ticket.id)  # a word that is wrong is seen to be
        node = await world.until(lambda n: n.medium is not None and n.medium.failures > boot_medium.TRIES_MOST)
        assert world.driver.ejects == tried + 1
        assert [c.type for c in node.conditions] == [boot_medium.EJECT_FAILED]
        world.driver.refuses_eject, world.driver.drive = 0, ""  # a person has taken it out by the BMC's page
        await world.ask(CloseTicket(), ticket.id)
        await world.until(lambda n: n.medium is None and not n.conditions)
        assert await world.tickets("n1", 0) == []


@pytest.mark.usefixtures("quick")
async def test_who_clears_it_has_it_tried_again(tmp_path: Path) -> None:
    """Mutant: a cleared condition is the end of it, and the medium stays."""
    async with a_world(tmp_path) as world:
        await world.register()
        world.driver.refuses_eject = boot_medium.TRIES_MOST
        await come_home(world)
        await world.until(lambda n: n.medium is not None and n.medium.given_up and bool(n.conditions))
        await world.ask(ClearCondition(boot_medium.EJECT_FAILED), "n1")
        await world.until(lambda n: n.medium is None and not n.conditions)
        assert (world.driver.drive, world.driver.ejects) == ("", boot_medium.TRIES_MOST + 1)


@asynccontextmanager
async def successor(world: BootWorld) -> AsyncIterator[None]:
    """The controller is gone in the midst of it; another one of the cell has the journal and the boot key."""
    await world.cell.stop()
    fleet: list[Cell] = []
    handover = BootSecretHandover(world.driver, lambda: fleet[0].view, KEY)
    wiring = Wiring((world.driver,), (handover, NetworkReboot(world.driver, handover)))
    second = Cell(world.cell.journal, performers(wiring))
    fleet.append(second)
    world.driver.cell = world.cell = second
    await second.start()
    try:
        requests = BootRequests(second, ImageCatalogue(world.images), KEY, world.driver.offers.get, world.tokens)
        async with boot_listening(BootAnswers(requests).answer, "127.0.0.1", 0) as url:
            world.url = url
            yield
    finally:
        await second.stop()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["set_boot_network", "power_on"])
async def test_a_controller_cut_off_on_the_way_in_leaves_no_medium_in_the_drive(
    tmp_path: Path, kind: str, when: str
) -> None:
    """Mutants: what may be in a drive is in memory alone; the eject of a boot that was cut off is never asked for."""
    async with a_world(tmp_path) as world:
        world.driver.cut = (kind, when)
        await world.enter()
        await world.driver.cut_off.wait()
        async with successor(world):
            await world.until(lambda n: n.plan is not None and n.plan.index == 2)
            await come_home(world)
            await world.until(lambda n: n.phase is Phase.onboard and n.medium is None)
            assert world.driver.drive == ""


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_controller_cut_off_on_the_way_out_leaves_no_medium_in_the_drive(tmp_path: Path, when: str) -> None:
    async with a_world(tmp_path) as world:
        await world.register()
        world.driver.cut = ("eject_boot_medium", when)
        await come_home(world)
        await world.driver.cut_off.wait()
        async with successor(world):
            await world.until(lambda n: n.phase is Phase.onboard and n.medium is None)
            assert world.driver.drive == ""


@pytest.mark.parametrize("given", [{"boot_images": "images"}, {"boot_key": "folder:k"}, {"boot_media": ("h", 1)}])
async def test_options_of_boots_need_a_listener(tmp_path: Path, given: dict[str, Any]) -> None:
    """Mutant: whoever forgot --boot-listen has a controller that boots nothing, and no word of it."""
    with pytest.raises(InvalidInputError, match="nothing boots without --boot-listen"):
        await boot_service(ServeSettings(data=str(tmp_path), **given), tmp_path, SecretFolder(tmp_path), Gate())
    assert await boot_service(ServeSettings(data=str(tmp_path)), tmp_path, SecretFolder(tmp_path), Gate()) is None
    with pytest.raises(InvalidInputError, match="--boot-images: no folder is named"):
        BootService(KEY, ServeSettings(data=str(tmp_path)), Gate())
