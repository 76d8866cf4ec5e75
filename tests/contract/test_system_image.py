"""A switch tray's own system is given an image over NVOS's REST API: its version is believed, no action's word."""

import hashlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from hostler.core.planning.rack_bring_up import seat_of
from hostler.core.state.assets import Asset, AssetKind, Binding, Position
from hostler.core.state.model import Operation, Outcome
from hostler.core.state.operations import FetchSystemImage, InstallSystemImage
from hostler.drivers.redfish import wire_nvos
from hostler.drivers.redfish.client import Clients
from hostler.drivers.redfish.connection_pool import Connections
from hostler.drivers.redfish.http_exchange import Access
from hostler.drivers.redfish.system_image_driver import SystemImageDriver
from hostler.drivers.redfish.tolerant_json import WireError
from hostler.ports import PortError, RefusedError, UnreachableError
from tests.contract.nvos_switch import LIES, NvosSwitch
from tests.kit import NOW

OLD, NEW = "nvos-25.02.1884", "nvos-25.02.4282"
FILE = "nvos-amd64-25.02.4282.bin"
BYTES = b"an image of NVOS"
SHA256 = hashlib.sha256(BYTES).hexdigest()


@dataclass
class World:
    """One switch, the place of its image, and the driver; time passes where a test says so."""

    switch: NvosSwitch
    driver: SystemImageDriver
    clients: Clients
    image: str
    nvos: str
    now: datetime = NOW
    number: int = 0

    def again(self) -> None:
        """A driver as a process that has just begun has it."""
        self.driver = SystemImageDriver(self.clients, lambda: self.now)

    def asset(self, serial: str = "TR-1") -> Any:
        named = (("serial", serial), ("bmc", "https://127.0.0.1:1"), ("nvos", self.nvos))
        bindings = tuple(Binding(kind, value, NOW) for kind, value in named)
        return seat_of(Asset("sw1", AssetKind.switch_tray, Position("c1", rack="r7"), bindings), NOW)

    def operation(self, act: FetchSystemImage | InstallSystemImage) -> Operation:
        self.number += 1
        return Operation(f"sw1-o{self.number}", act, "sw1", "r7-r1", 0, self.now, self.now + timedelta(hours=1.5))

    def fetch(self, sha256: str = SHA256) -> Operation:
        return self.operation(FetchSystemImage(NEW, self.image, sha256, (NEW,)))

    def install(self, *, downgrade: bool = False, activates: str = "") -> Operation:
        return self.operation(InstallSystemImage(NEW, self.image, (NEW,), downgrade, activates))

    async def done(self, operation: Operation, *, forgets: bool = False) -> Outcome:
        """The operation's end, as the controller sees it: performed once, then observed until its deadline."""
        outcome = await self._answer(self.driver.perform(operation, self.asset()), operation)
        while outcome.result == "unknown" and self.now < operation.deadline:
            if forgets:
                self.again()
            self.now += timedelta(seconds=20)
            outcome = await self._answer(self.driver.observe(operation, self.asset()), operation)
        return outcome

    async def _answer(self, asked: Awaitable[Outcome], operation: Operation) -> Outcome:
        try:
            return await asked
        except UnreachableError as error:
            return Outcome(operation.id, "sw1", "unknown", str(error))
        except RefusedError as error:
            return Outcome(operation.id, "sw1", "refused", str(error))


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_world(**fields: Any) -> AsyncIterator[World]:
    async def image(_: web.Request) -> web.Response:
        return web.Response(body=BYTES)

    library = web.Application()
    library.router.add_get("/{name}", image)
    moments: list[World] = []
    switch = NvosSwitch(lambda: moments[0].now, runs=OLD, library={FILE: NEW}, **fields)
    async with served(switch.app()) as nvos, served(library) as place, Connections() as connections:
        clients = Clients(connections, lambda _: Access("admin", "secret", timeout_s=2.0))
        driver = SystemImageDriver(clients, lambda: moments[0].now)
        moments.append(World(switch, driver, clients, f"{place}/{FILE}", nvos))
        yield moments[0]


ENDS = ("", "ends as an error and restarts", "actions are forgotten", "no number", "answer is lost")


@pytest.mark.parametrize("layout", ["object", "text", "build"])
@pytest.mark.parametrize(
    "lie", ["", "ends as an error and restarts", "actions are forgotten", "no number", "answer is lost"]
)
async def test_an_image_is_fetched_installed_and_done_once_its_version_runs(lie: str, layout: str) -> None:
    """Mutants: an action's error is the end though the version runs; a lost answer has it asked for twice."""
    async with a_world(lie=lie, layout=layout) as world:
        fetched = await world.done(world.fetch())
        assert fetched.result == "done", fetched
        installed = await world.done(world.install())
        assert installed.result == "done", installed
        assert world.switch.runs == NEW
        assert installed.facts["NVOS"] == NEW
        assert world.switch.asked == [f"fetch {FILE}", f"install {FILE}"]
        assert (await world.done(world.install())).result == "done", "what runs is not installed again"
        assert (await world.done(world.fetch())).result == "done"
        assert len(world.switch.asked) == 2


@pytest.mark.parametrize("lie", ["", "ends as an error and restarts", "actions are forgotten"])
async def test_whoever_takes_over_sees_from_the_switch_how_far_it_is_and_asks_for_nothing(lie: str) -> None:
    """Mutant: a driver without memory takes a fetch or an installation under way for one that never was."""
    async with a_world(lie=lie) as world:
        assert (await world.done(world.fetch(), forgets=True)).result == "done"
        assert (await world.done(world.install(), forgets=True)).result == "done"
        assert len(world.switch.asked) == 2


FAILS: dict[str, tuple[str, str]] = {
    "fetch fails": ("fetch", "its action failed: Failed to verify the image"),
    "fetch leaves no file": ("fetch", "its action says done, and the image is not on the switch"),
    "install fails": ("install", "its action failed: Failed to verify the image"),
    "success changes nothing": ("install", "its action says done, which the version contradicts"),
    "installed, never booted": ("install", f"{NEW} is installed and was not booted: restart the switch"),
}


@pytest.mark.parametrize("lie", FAILS)
async def test_what_the_switch_says_and_has_not_done_fails_with_its_reason(lie: str) -> None:
    """Mutants: a success without a version is done; a switch that boots the old image waits for its deadline."""
    step, says = FAILS[lie]
    async with a_world(lie=lie) as world:
        fetched = await world.done(world.fetch())
        outcome = fetched if step == "fetch" else await world.done(world.install())
        assert outcome.result == "failed", outcome
        assert says in outcome.detail
        assert world.switch.runs == OLD


@pytest.mark.parametrize("lie", ["", "success changes nothing", "install fails", "installed, never booted"])
@pytest.mark.parametrize("forgets", [False, True])
async def test_where_a_power_cycle_follows_an_image_that_waits_for_it_is_installed(lie: str, forgets: bool) -> None:
    """Mutants: the power goes while the switch restarts by itself; what was not installed counts as waiting."""
    async with a_world(lie=lie) as world:
        assert (await world.done(world.fetch())).result == "done"
        install = world.install(activates="dc_cycle")
        outcome = await world.done(install, forgets=forgets)
        if lie == "installed, never booted":
            assert outcome.result == "done", outcome
            assert outcome.detail.endswith(f"{NEW} is installed and was not booted: dc cycle follows")
            assert world.now - install.started >= timedelta(minutes=20), "it may be restarting by itself"
        elif lie:
            assert outcome.result in ("failed", "not_done"), outcome
            assert world.switch.runs == OLD
        else:
            assert (outcome.result, world.switch.runs) == ("done", NEW)


def test_every_lie_has_its_test() -> None:
    assert {*ENDS, *FAILS} == set(LIES)


async def test_another_switch_another_image_and_an_older_one_are_refused_with_nothing_sent() -> None:
    """Mutants: the serial number is not asked; the image's bytes are not; a newer system is written over."""
    async with a_world() as world:
        with pytest.raises(RefusedError, match=r"bound to serial 'TR-9', but NVOS at .* shows 'TR-1'"):
            await world.driver.perform(world.fetch(), world.asset("TR-9"))
        with pytest.raises(RefusedError, match="has SHA-256"):
            await world.driver.perform(world.fetch("ab" * 32), world.asset())
        with pytest.raises(RefusedError, match="lists no image"):
            await world.driver.perform(world.install(), world.asset())
        world.switch.files.add(FILE)
        world.switch.runs = "nvos-25.03.1000"
        with pytest.raises(RefusedError, match="is newer than the baseline"):
            await world.driver.perform(world.install(), world.asset())
        world.image = f"{world.image.rpartition('/')[0]}/.."
        with pytest.raises(RefusedError, match="no plain file name"):
            await world.driver.perform(world.fetch(), world.asset())
        assert world.switch.asked == []
        world.switch.garbage = True
        with pytest.raises(PortError):
            await world.driver.perform(world.fetch(), world.asset())
        with pytest.raises(UnreachableError, match="restart the switch's nvued"):
            await world.driver.observe(world.install(), world.asset())


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"null", b"7", b"{", b"\xff", b'{"current": 1}', b'{"current": {"a": []}}']
)
def test_garbage_is_no_version_and_no_action(raw: bytes) -> None:
    """Mutant: what cannot be read is the version that was wanted, or ends the process."""
    for parse in (wire_nvos.system_images, wire_nvos.action, wire_nvos.serial_number, wire_nvos.running_actions):
        try:
            said = parse(raw)
        except WireError:
            continue
        assert said in (wire_nvos.SystemImages("", ""), wire_nvos.NvosAction("running", ""), "", 0)
    assert wire_nvos.action_id(raw) in ("", "7")
    assert wire_nvos.action_id(b'"' + b"9" * 99 + b'"') == ""
    assert wire_nvos.action_id(b'"../../system"') == ""
