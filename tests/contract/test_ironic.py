"""The driver of an Ironic's machines against a real Ironic, whose BMCs are those of sushy-tools.

What Ironic answers while it works, and how it tells failures, is its own: nothing here plays it.
"""

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from hostler.app.ironic_access import FILE, with_ironic
from hostler.core.state.assets import Binding
from hostler.core.state.input_problems import InvalidInputError
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import AnyAct, InspectMachine, LocateOn, PowerOn, SetBootNetwork, SwitchOff
from hostler.drivers.ironic import client as ironic_client
from hostler.drivers.ironic import wire
from hostler.drivers.ironic.client import IronicAccess, IronicClient
from hostler.drivers.ironic.ironic_nodes import IronicNodes
from hostler.drivers.ironic.ironic_work import WORK_KINDS
from hostler.drivers.ironic.without_ironic import WithoutIronic
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.ports import BusyTargetError, RefusedError, UnreachableError
from hostler.runtime.performers import Wiring, performers
from tests.contract.ironic_world import RealIronic, ironic_or_skip, until_done
from tests.kit import NOW, a_node

pytestmark = pytest.mark.nightly("a real Ironic runs beside it")

NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")
SECRETS = KeptSecrets({}, lambda: 0.0)


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIronic]:
    with ironic_or_skip(tmp_path_factory.mktemp("ironic"), NAMES) as there:
        yield there


class Bmc:
    """The BMC driver behind: it notes what is handed on."""

    kinds = frozenset({"power_on", "power_off", "set_boot_network", "locate_on"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        self.asked.append(f"{operation.kind} {node.id}")
        return Outcome(operation.id, node.id, "done")

    observe = perform

    async def revoke(self, operation: Operation, node: Node) -> None: ...


class World:
    """The driver before one Ironic."""

    def __init__(self, there: RealIronic, session: aiohttp.ClientSession) -> None:
        self.there, self.bmc = there, Bmc()
        self.client = IronicClient(session, IronicAccess(there.url), SECRETS)
        self.driver = IronicNodes(self.bmc, self.client)

    def node(self, name: str, bmc: str = "", provisioner: str = "ironic") -> Node:
        binding = Binding("bmc", bmc or self.there.address(name), NOW)
        return a_node(name, bindings=(binding,), provisioner=provisioner)

    async def ask(self, name: str, act: AnyAct, how: str = "perform", **said: str) -> Outcome:
        now = datetime.now(UTC)
        asked = Operation("o1", act, name, "p", 0, now, now + timedelta(minutes=3))
        outcome: Outcome = await getattr(self.driver, how)(asked, self.node(name, **said))
        return outcome

    async def until_done(self, name: str, act: AnyAct) -> Outcome:
        """As the runner does: ask once, then look; what was not done is asked again."""
        return await until_done(partial(self.ask, name, act))


@pytest.fixture
async def world(ironic: RealIronic) -> AsyncIterator[World]:
    async with aiohttp.ClientSession() as session:
        yield World(ironic, session)


@pytest.mark.smoke
async def test_a_machine_that_is_enrolled_is_managed_set_to_boot_and_switched_by_ironic(world: World) -> None:
    """The BMC is asked by the test. Mutants: what Ironic accepted is done; an enrolled node is not managed first."""
    world.there.enrol("n1")
    first = await world.ask("n1", SetBootNetwork())
    assert (first.result, "verifies that it reaches" in first.detail) == ("unknown", True)
    done = await world.until_done("n1", SetBootNetwork())
    assert "Ironic reads pxe" in done.detail
    assert world.there.state("n1")["provision_state"] == "manageable"
    boot = world.there.shown("n1")["Boot"]  # sushy-tools calls every override Continuous
    assert boot["BootSourceOverrideTarget"] == "Pxe"
    await world.until_done("n1", PowerOn())
    assert world.there.shown("n1")["PowerState"] == "On"
    assert "already" in (await world.ask("n1", PowerOn())).detail
    await world.until_done("n1", SwitchOff())
    assert world.there.shown("n1")["PowerState"] == "Off"
    assert world.bmc.asked == []


async def test_what_is_not_ironics_goes_to_the_bmc(world: World) -> None:
    """Mutants: every node is Ironic's; every kind is."""
    await world.ask("n1", LocateOn())
    await world.ask("n2", PowerOn(), provisioner="direct")
    assert world.bmc.asked == ["locate_on n1", "power_on n2"]


async def test_a_node_that_is_not_there_or_is_another_machine_is_refused(world: World) -> None:
    """Mutants: the name is enough; two machines behind one BMC are one."""
    with pytest.raises(RefusedError, match=r"knows no such node: .*register it there"):
        await world.ask("n6", PowerOn())
    world.there.enrol("n2", system="n3")
    with pytest.raises(RefusedError, match="binding mismatch"):
        await world.ask("n2", PowerOn())
    assert world.there.shown("n3")["PowerState"] == "Off"


async def test_an_address_for_the_boot_is_refused_so_that_it_boots_by_pxe(world: World) -> None:
    """Mutant: the secret of the boot is lost in silence."""
    world.there.enrol("n3")
    with pytest.raises(RefusedError, match="hands no boot address"):
        await world.ask("n3", SetBootNetwork("uefi_http", "http://boot/secret"))


async def test_maintenance_that_somebody_set_is_told_with_its_reason_and_the_way_out(world: World) -> None:
    """Mutants: it is acted on; it is taken off."""
    world.there.enrol("n4")
    world.there.call("PUT", "/v1/nodes/n4/states/provision", {"target": "manage"})
    world.there.until("n4", provision_state="manageable", reservation=None, power_state="power off")
    world.there.call("PUT", "/v1/nodes/n4/maintenance", {"reason": "disk swap, ann"})
    with pytest.raises(RefusedError, match=r"in maintenance in Ironic: disk swap, ann; run .*maintenance unset n4"):
        await world.ask("n4", PowerOn())
    assert world.there.state("n4")["maintenance"] is True
    world.there.call("DELETE", "/v1/nodes/n4/maintenance")
    await world.until_done("n4", PowerOn())


async def test_a_failed_state_is_told_with_ironics_own_error_and_is_a_persons(world: World) -> None:
    """sushy-tools shows no processors, on which an inspection fails. Mutant: the machine is switched all the same."""
    world.there.enrol("n5")
    world.there.call("PUT", "/v1/nodes/n5/states/provision", {"target": "manage"})
    world.there.until("n5", provision_state="manageable", reservation=None, power_state="power off")
    world.there.call("PUT", "/v1/nodes/n5/states/provision", {"target": "inspect"})
    world.there.until("n5", provision_state="inspect failed", reservation=None)
    with pytest.raises(RefusedError, match=r"'inspect failed'.*openstack baremetal node manage n5"):
        await world.ask("n5", PowerOn())
    assert world.there.shown("n5")["PowerState"] == "Off"


async def test_a_locked_node_is_asked_again_and_a_bmc_that_hangs_fails_nothing(world: World) -> None:
    """Ironic verifies a BMC that takes connections and says nothing: it holds its lock. Mutant: 409 is a refusal."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        held: list[socket.socket] = []
        threading.Thread(target=_take, args=(mute, held), daemon=True).start()
        bmc = f"http://127.0.0.1:{mute.getsockname()[1]}"
        world.there.enrol("n6", bmc=bmc)
        address = f"{bmc}/redfish/v1/Systems/{world.there.systems['n6']}"
        assert (await world.ask("n6", SetBootNetwork(), bmc=address)).result == "unknown"
        seen = await world.ask("n6", SetBootNetwork(), "observe", bmc=address)
        assert (seen.result, "'verifying'" in seen.detail) == ("unknown", True), seen
        with pytest.raises(BusyTargetError, match="it is asked again"):
            await world.ask("n6", PowerOn(), bmc=address)
        with pytest.raises(BusyTargetError, match="has the node locked"):
            await world.client.set_power("n6", "power on")
    for one in held:
        one.close()


def _take(mute: socket.socket, held: list[socket.socket]) -> None:
    try:
        while True:
            held.append(mute.accept()[0])
    except OSError:
        return


async def test_an_api_version_that_it_does_not_speak_and_an_ironic_that_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutants: an old Ironic looks like one without the node; one that is away has refused."""
    monkeypatch.setattr(ironic_client, "MICROVERSION", "1.999")
    with pytest.raises(RefusedError, match=r"does not speak API version 1\.999"):
        await world.ask("n1", PowerOn())
    async with aiohttp.ClientSession() as session:
        away = IronicNodes(Bmc(), IronicClient(session, IronicAccess("http://127.0.0.1:9"), SECRETS))
        now = datetime.now(UTC)
        with pytest.raises(UnreachableError, match="does not answer"):
            await away.perform(Operation("o1", PowerOn(), "n1", "p", 0, now, now), world.node("n1"))


@pytest.mark.parametrize("hostile", [b"", b"[]", b"{}", b'{"uuid": 1}', b"[" * 5000, b"\xff", b'{"uuid": "u"}'])
def test_an_answer_that_is_no_node_is_an_error(hostile: bytes) -> None:
    with pytest.raises(wire.IronicWireError):
        wire.node(hostile)
    assert wire.boot_device(hostile) == ("", None)
    assert wire.fault_of(hostile)


async def test_the_file_names_an_ironic_or_is_refused_whole(tmp_path: Path) -> None:
    """Mutants: without the file there is an Ironic; a file that is wrong is passed over."""
    bmc = Bmc()
    async with aiohttp.ClientSession() as session:
        alone = with_ironic(bmc, tmp_path, session, SECRETS)
        assert alone[0] is bmc
        assert performers(Wiring(alone)).keys() >= WORK_KINDS, "a controller without an Ironic does not start"
        unsound = ('{"url": "ironic"}', '{"url": "http://i", "user": "x"}', '{"url": "http://i", "timeout_s": 0}')
        for wrong in ("{", "{}", *unsound):
            (tmp_path / FILE).write_text(wrong)
            with pytest.raises(InvalidInputError):
                with_ironic(bmc, tmp_path, session, SECRETS)
        (tmp_path / FILE).write_text('{"url": "https://ironic.example.org:6385"}')
        [machines] = with_ironic(bmc, tmp_path, session, SECRETS)
        assert isinstance(machines, IronicNodes)


async def test_a_cell_without_an_ironic_begins_none_of_its_work() -> None:
    """Mutant: observing it tells `unknown`, and the operation is looked at for an hour."""
    asked, node = Operation("o1", InspectMachine(), "n1", "p", 0, NOW, NOW), a_node("n1")
    with pytest.raises(RefusedError, match=r"inspect_machine on n1; write ironic\.json"):
        await WithoutIronic().perform(asked, node)
    assert (await WithoutIronic().observe(asked, node)).result == "not_done"
