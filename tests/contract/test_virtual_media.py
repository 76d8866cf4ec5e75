"""Boot media in virtual drives: the shapes of seven BMCs and of OpenStack's emulator, and drives that lie."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp.web
import pytest

from hostler.ports import RefusedError
from hostler.sim.bmc import vendors as sim_vendors
from hostler.sim.bmc.emulated_machine import Quirks
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import CERTIFICATE, SushyTools, World, a_machine, emulated, start_sushy_tools

pytestmark = pytest.mark.xdist_group("sushy-tools")
HTTPS_ALONE = {"gb200": "USB1", "gb300": "USB1", "openbmc": "Slot_2"}
VENDORS = {"dell": "CD", "hpe": "2", "lenovo": "EXT1", "supermicro": "VirtualMedia1", **HTTPS_ALONE}
DRIVELESS = [name for name in sim_vendors.VENDORS if sim_vendors.VENDORS[name].drives is None]
OURS = ("http", "shared", "twin", *VENDORS)
STRANGER = "http://admin:hunter2@files/rescue.iso"


@pytest.fixture(scope="module")
def sushy_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SushyTools]:
    folder: Path = tmp_path_factory.mktemp("sushy-tools")
    tools, process = start_sushy_tools(folder, systems=8)
    try:
        yield tools
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
async def sites() -> AsyncIterator[dict[str, str]]:
    """Scheme → the beginning of the addresses of media, which are served there."""

    async def send(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(body=b"CD001", status=404 if "gone" in request.path else 200)

    app = aiohttp.web.Application()
    app.router.add_get("/n/{node}/{secret}/{file}", send)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    for context in (None, CERTIFICATE.server_context()):
        await aiohttp.web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    plain, tls = (address[1] for address in runner.addresses)
    yield {"http": f"http://127.0.0.1:{plain}/n/n1/", "https": f"https://127.0.0.1:{tls}/n/n1/"}
    await runner.cleanup()


@pytest.fixture
def site(sites: dict[str, str], request: pytest.FixtureRequest) -> str:
    """The addresses that the BMC of this test fetches from."""
    params = getattr(request.node, "callspec", None)
    named = {params.params.get("world"), params.params.get("vendor")} if params is not None else set()
    return sites["https" if named & HTTPS_ALONE.keys() else "http"]


@pytest.fixture(params=[*OURS, "sushy-tools"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "sushy-tools":
        async with request.getfixturevalue("sushy_tools").world() as made:
            yield made
    else:
        async with emulated(request.param) as made:
            yield made


def a_boot(site: str, secret: str = "s1") -> dict[str, str]:
    return {"target": "medium", "url": f"{site}{secret}/hostler-n1.iso"}


def lying(*lies: str, vendor: str = "") -> Quirks:
    return Quirks(vendor=vendor, drives=frozenset(lies))


async def test_a_medium_goes_in_boots_once_and_comes_out(world: World, site: str) -> None:
    """Mutants: only drives of the BMC, or only those of the system; a refusal is not read for what it asks; a drive for
    sticks is taken; the boot target is Cd for all; an eject without a body."""
    boot = a_boot(site)
    assert (await world.observe("set_boot_network", **boot)).result == "not_done"
    done = await world.perform("set_boot_network", **boot)
    assert done.result == "done", done.detail
    assert str(done.facts["boot"]).endswith("Cd")
    assert (await world.observe("set_boot_network", **boot)).result == "done"
    assert (await world.observe("eject_boot_medium", images=site)).result == "not_done"
    out = await world.perform("eject_boot_medium", images=site)
    assert out.result == "done", out.detail
    assert (await world.observe("set_boot_network", **boot)).result == "not_done"
    assert "no virtual drive holds a medium" in (await world.perform("eject_boot_medium", images=site)).detail


async def test_what_is_in_already_is_not_put_in_again(world: World, site: str) -> None:
    """As after a takeover between medium and power-on. Mutant: each try inserts."""
    await world.perform("set_boot_network", **a_boot(site))
    again = await world.perform("set_boot_network", **a_boot(site))
    assert again.result == "done"
    if world.machine:
        assert world.machine.counts["InsertMedia"] == 1


async def test_the_medium_of_an_earlier_boot_makes_way(world: World, site: str) -> None:
    """Mutant: a drive that holds anything is passed over; after one refused eject a machine never boots again."""
    await world.perform("set_boot_network", **a_boot(site, "old"))
    assert (await world.perform("set_boot_network", **a_boot(site, "new"))).result == "done"
    assert (await world.observe("set_boot_network", **a_boot(site, "old"))).result == "not_done"


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_machine_boots_from_what_was_put_in(vendor: str, site: str) -> None:
    async with emulated(vendor) as world:
        boot = a_boot(site)
        await world.perform("set_boot_network", **boot)
        assert world.ours.media == {VENDORS[vendor]: boot["url"]}
        await world.perform("power_on")
        await world.pass_by(400)
        world.ours.advance(world.ours.next_due() or world.ours.manager_reset_at)
        await world.observe("power_on")
        assert (world.ours.booted_uri, world.ours.boot.enabled) == (boot["url"], "Disabled")


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_stranger_s_medium_stays_where_it_is(vendor: str, site: str) -> None:
    """Mutants: every drive is emptied first; eject takes out whatever is in; the refusal tells the address's login."""
    async with emulated(vendor) as world:
        for drive in ("CD", "2", "EXT1", "EXT2", "VirtualMedia1", "USB1", "USB2", "Slot_2"):
            world.ours.media[drive] = STRANGER
        with pytest.raises(RefusedError, match=r"holds rescue\.iso of files") as refused:
            await world.perform("set_boot_network", **a_boot(site))
        assert "hunter2" not in str(refused.value)
        assert (await world.perform("eject_boot_medium", images=site)).result == "done"
        assert set(world.ours.media.values()) == {STRANGER}
        assert world.ours.counts["EjectMedia"] == 0
        assert world.ours.counts["SetBoot"] == 0


async def test_media_of_another_node_are_a_stranger_s(site: str) -> None:
    """Mutant: whatever Hostler serves is ours: with two machines behind one BMC each would take the other's medium."""
    async with emulated("hpe") as world:
        world.ours.media["2"] = f"{site.replace('/n1/', '/n10/')}s/hostler-n10.iso"
        assert (await world.perform("eject_boot_medium", images=site)).result == "done"
        assert world.ours.counts["EjectMedia"] == 0


async def test_a_free_drive_beside_a_stranger_s_is_used(site: str) -> None:
    async with emulated("lenovo") as world:
        world.ours.media["EXT1"] = STRANGER
        assert (await world.perform("set_boot_network", **a_boot(site))).result == "done"
        assert world.ours.media == {"EXT1": STRANGER, "EXT2": a_boot(site)["url"]}


async def test_a_request_that_is_taken_and_does_nothing_is_not_believed(site: str) -> None:
    """The task that never ends looks the same: nothing is in. Mutant: 204 counts as done."""
    async with emulated(machine=a_machine(quirks=lying("not_inserted"))) as world:
        said = await world.perform("set_boot_network", **a_boot(site))
        assert (said.result, said.detail) == ("unknown", "its virtual drive took the boot medium, and shows none yet")
        assert world.ours.counts["SetBoot"] == 0


async def test_a_medium_that_takes_its_time_is_seen_when_it_is_in(site: str) -> None:
    async with emulated(machine=a_machine(quirks=lying("slow"))) as world:
        assert (await world.perform("set_boot_network", **a_boot(site))).result == "unknown"
        await world.pass_by(30)
        assert (await world.perform("set_boot_network", **a_boot(site))).result == "done"
        assert world.ours.counts["InsertMedia"] == 1


async def test_a_medium_that_the_bmc_could_not_fetch_is_not_in(site: str) -> None:
    async with emulated("supermicro") as world:
        await world.perform("set_boot_network", **a_boot(site, "gone"))
        await world.pass_by(1)
        assert (await world.observe("set_boot_network", **a_boot(site, "gone"))).result == "not_done"


async def test_a_missing_licence_is_told_as_one(site: str) -> None:
    async with emulated(machine=a_machine(quirks=lying("no_licence", vendor="supermicro"))) as world:
        with pytest.raises(RefusedError, match="add the licence for virtual media"):
            await world.perform("set_boot_network", **a_boot(site))


async def test_a_boot_override_that_is_forgotten_is_seen(site: str) -> None:
    async with emulated(machine=a_machine(quirks=lying("forgets_boot"))) as world:
        said = await world.perform("set_boot_network", **a_boot(site))
        assert said.result == "not_done"
        assert "address to boot from" not in said.detail


@pytest.mark.parametrize(("lie", "ends"), [("eject_refused", "refused"), ("kept", "not_done")])
async def test_an_eject_that_does_not_happen_is_not_done(lie: str, ends: str, site: str) -> None:
    async with emulated(machine=a_machine(quirks=lying(lie))) as world:
        await world.perform("set_boot_network", **a_boot(site))
        if ends == "refused":
            with pytest.raises(RefusedError, match="in use"):
                await world.perform("eject_boot_medium", images=site)
            return
        said = await world.perform("eject_boot_medium", images=site)
        assert said.result == "unknown"
        assert "still holds hostler-n1.iso of 127.0.0.1" in said.detail
        assert "s1" not in said.detail


async def test_a_drive_that_cannot_be_read_is_neither_used_nor_emptied(site: str) -> None:
    rule = RequestFaultRule("*/VirtualMedia/EXT1", method="GET", status=500, times=0)
    async with emulated("lenovo", rules=(rule,)) as world:
        assert (await world.perform("set_boot_network", **a_boot(site))).result == "done"
        assert list(world.ours.media) == ["EXT2"]


@pytest.mark.parametrize("vendor", DRIVELESS)
async def test_a_bmc_without_virtual_drives_says_so_and_boots_by_pxe(vendor: str, site: str) -> None:
    """Mutant: a BMC without drives is refused altogether."""
    async with emulated(vendor) as world:
        with pytest.raises(RefusedError, match="shows no virtual drive"):
            await world.perform("set_boot_network", **a_boot(site))
        assert (await world.perform("eject_boot_medium", images=site)).result == "done"
        by_address = await world.perform("set_boot_network", target="uefi_http", url=f"{site}s1/boot.efi")
        assert "does not keep the address to boot from" in by_address.detail
        assert (await world.perform("set_boot_network")).result == "done"


@pytest.mark.parametrize("bmc", HTTPS_ALONE)
async def test_a_bmc_that_fetches_by_https_alone_says_so_without_the_secret(bmc: str, sites: dict[str, str]) -> None:
    """Mutants: its words are told as they stand, with the address; what to do is left out."""
    async with emulated(bmc) as world:
        with pytest.raises(RefusedError, match=r"give boot\.media\.url an https address") as refused:
            await world.perform("set_boot_network", **a_boot(sites["http"], "s3cret"))
        assert "s3cret" not in str(refused.value)
        assert world.ours.media == {}
        assert world.ours.counts["SetBoot"] == 0


@pytest.mark.parametrize("vendor", HTTPS_ALONE)
async def test_a_drive_that_a_browser_fills_is_left_alone(vendor: str, site: str) -> None:
    """Slot_0 is listed first, and has no InsertMedia. Mutant: such a drive is changed by PATCH (a 500)."""
    rule = RequestFaultRule("*/VirtualMedia/Slot_0*", method="PATCH", status=500, times=0)
    async with emulated(vendor, rules=(rule,)) as world:
        assert (await world.perform("set_boot_network", **a_boot(site))).result == "done"
        assert "Slot_0" not in world.ours.media
