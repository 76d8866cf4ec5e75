"""Inspection, deployment and cleaning by a real Ironic, on machines whose hardware is Ironic's own fake.

States, errors, locks and time-outs are the real conductor's; no image is written and no ramdisk boots. Where the deploy
interface is the real `direct`, the machine's agent is one that never calls; one that does is in `test_ironic_direct`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp import web

from hostler.core.state.assets import Binding
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import AnyAct, CleanMachine, DeployImage, InspectMachine
from hostler.drivers.ironic.client import IronicAccess, IronicClient
from hostler.drivers.ironic.ironic_nodes import IronicNodes
from hostler.drivers.secrets.secret_cache import KeptSecrets
from hostler.ports import BusyTargetError, RefusedError
from tests.contract.ironic_world import RealIronic, ironic_or_skip
from tests.contract.test_ironic import Bmc
from tests.kit import NOW, a_node

pytestmark = pytest.mark.nightly("a real Ironic runs beside it")

ENDS_S = 240
NAMES = tuple(f"w{number}" for number in range(1, 10))
IMAGE = DeployImage("http://127.0.0.1:9/image.raw", "ab" * 32)
STEPS = CleanMachine(("bios.factory_reset",))


@pytest.fixture(scope="module")
def ironic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealIronic]:
    with ironic_or_skip(tmp_path_factory.mktemp("ironic"), NAMES) as there:
        yield there


class Work:
    """The driver before one Ironic; what it is asked goes on as the runner has it go on."""

    def __init__(self, there: RealIronic, session: aiohttp.ClientSession) -> None:
        self.there = there
        self.client = IronicClient(session, IronicAccess(there.url), KeptSecrets({}, lambda: 0.0))
        self.driver = IronicNodes(Bmc(), self.client)

    def node(self, name: str) -> Node:
        return a_node(name, bindings=(Binding("bmc", self.there.address(name), NOW),), provisioner="ironic")

    async def ask(self, name: str, act: AnyAct, how: str = "perform", operation: str = "o1") -> Outcome:
        now = datetime.now(UTC)
        asked = Operation(operation, act, name, "", 0, now, now + timedelta(hours=1), aside=True)
        outcome: Outcome = await getattr(self.driver, how)(asked, self.node(name))
        return outcome

    async def ended(self, name: str, act: AnyAct, operation: str = "o1") -> Outcome:
        """As the runner does: ask once, then look; what was not done is asked again."""
        how = "perform"
        async with asyncio.timeout(ENDS_S):
            while True:
                try:
                    outcome = await self.ask(name, act, how, operation)
                except BusyTargetError:
                    how = "observe"
                    continue
                if outcome.result not in ("unknown", "not_done"):
                    return outcome
                how = "perform" if outcome.result == "not_done" else "observe"
                await asyncio.sleep(0.2)

    def state(self, name: str) -> str:
        return str(self.there.state(name)["provision_state"])


@pytest.fixture
async def work(ironic: RealIronic) -> AsyncIterator[Work]:
    async with aiohttp.ClientSession() as session:
        yield Work(ironic, session)


async def test_a_machine_is_inspected_cleaned_and_given_an_image_from_enrolment_on(work: Work) -> None:
    """Mutants: what was asked for is done; a second operation takes the first one's end for its own."""
    work.there.enrol_fake("w1")
    inspected = await work.ended("w1", InspectMachine(), "o1")
    assert (inspected.result, work.state("w1")) == ("done", "manageable")
    cleaned = await work.ended("w1", STEPS, "o2")
    assert (cleaned.result, work.state("w1")) == ("done", "manageable")
    assert (await work.ask("w1", STEPS, "observe", "o3")).result == "not_done"
    deployed = await work.ended("w1", IMAGE, "o4")
    assert (deployed.result, work.state("w1")) == ("done", "active")
    info = work.there.state("w1")["instance_info"]
    assert (info["image_source"], info["image_checksum"]) == (IMAGE.image, IMAGE.checksum)
    assert info["image_disk_format"] == "raw"
    assert (await work.ask("w1", IMAGE, "observe", "o4")).result == "done"


async def test_a_machine_that_carries_an_image_is_neither_overwritten_nor_cleaned(work: Work) -> None:
    """Mutant: an active machine is deployed again."""
    work.there.enrol_fake("w2")
    assert (await work.ended("w2", IMAGE)).result == "done"
    other = DeployImage("http://127.0.0.1:9/other.raw", "cd" * 32)
    with pytest.raises(RefusedError, match=r"'active'.* with http://127.0.0.1:9/image.raw; run .* undeploy w2"):
        await work.ask("w2", other, operation="o2")
    with pytest.raises(RefusedError, match=r"nothing is inspected or cleaned; run .* undeploy w2"):
        await work.ask("w2", STEPS, operation="o3")
    assert work.there.state("w2")["instance_info"]["image_source"] == IMAGE.image


async def test_a_step_that_ironic_does_not_have_is_told_in_its_words(work: Work) -> None:
    """Ironic takes it and fails. Mutants: a failed cleaning is waited for; it is tried again."""
    work.there.enrol_fake("w3")
    outcome = await work.ended("w3", CleanMachine(("deploy.no_such_step",)))
    assert outcome.result == "failed"
    assert "'clean failed'" in outcome.detail
    assert "no_such_step" in outcome.detail
    assert "openstack baremetal node manage w3" in outcome.detail
    with pytest.raises(RefusedError, match=r"'clean failed'.*openstack baremetal node manage w3"):
        await work.ask("w3", InspectMachine(), operation="o2")


@pytest.fixture
async def image() -> AsyncIterator[DeployImage]:
    """An image that is served, as `direct` looks at it before it boots its ramdisk."""

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1024)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield DeployImage(f"http://127.0.0.1:{runner.addresses[0][1]}/image.raw", "ab" * 32)
    await runner.cleanup()


async def test_a_ramdisk_that_never_calls_back_ends_as_ironics_timeout(work: Work, image: DeployImage) -> None:
    """The real `direct` deploy waits for its agent, six seconds here.

    Mutants: a wait has no end; a reason that Ironic has dropped from the node's record again is told as none.
    """
    work.there.enrol_fake("w4", deploy="direct")
    outcome = await work.ended("w4", image)
    assert outcome.result == "failed"
    assert "'deploy failed'" in outcome.detail
    assert "imeout" in outcome.detail
    assert "openstack baremetal node undeploy w4" in outcome.detail
    work.there.call("PUT", "/v1/nodes/w4/states/power", {"target": "power on"})
    await asyncio.to_thread(work.there.until, "w4", last_error=None, reservation=None)
    later = await work.ask("w4", image, "observe")
    assert (later.result, "imeout" in later.detail) == ("failed", True), "its reason is in the node's history"


async def test_work_that_ironic_does_not_take_is_refused_in_its_words(work: Work) -> None:
    """A step of an interface that there is not. Mutant: a 400 is asked again."""
    work.there.enrol_fake("w5")
    wrong = CleanMachine(("nosuch.step",))
    with pytest.raises(RefusedError, match=r"Ironic refuses \(400\)"):
        await work.ended("w5", wrong)
    assert work.state("w5") == "manageable"


async def test_an_image_that_ironic_cannot_reach_is_told_with_its_address(work: Work) -> None:
    """Mutant: the deployment of an image that is nowhere is waited for."""
    work.there.enrol_fake("w8", deploy="direct")
    outcome = await work.ended("w8", IMAGE)
    assert outcome.result == "failed"
    assert "Validation of image href http://" in outcome.detail


async def test_what_was_marked_and_never_begun_is_not_done_and_begins(work: Work) -> None:
    """The controller ends between mark and request. Mutants: a mark is a beginning; what was done is done again."""
    work.there.enrol_fake("w6")
    work.there.call("PUT", "/v1/nodes/w6/states/provision", {"target": "manage"})
    found = work.there.until("w6", provision_state="manageable", reservation=None)
    mark = {"operation": "o1", "before": found["provision_updated_at"]}
    work.there.call("PATCH", "/v1/nodes/w6", [{"op": "add", "path": "/extra/hostler", "value": mark}])
    assert (await work.ask("w6", InspectMachine(), "observe")).result == "not_done"
    assert (await work.ended("w6", InspectMachine())).result == "done"
    began = work.there.state("w6")["inspection_started_at"]
    assert (await work.ask("w6", InspectMachine())).result == "done"
    assert work.there.state("w6")["inspection_started_at"] == began


async def test_maintenance_that_somebody_set_stops_the_work_with_its_reason(work: Work) -> None:
    work.there.enrol_fake("w7")
    work.there.call("PUT", "/v1/nodes/w7/states/provision", {"target": "manage"})
    work.there.until("w7", provision_state="manageable", reservation=None)
    work.there.call("PUT", "/v1/nodes/w7/maintenance", {"reason": "disk swap, ann"})
    with pytest.raises(RefusedError, match="in maintenance in Ironic: disk swap, ann"):
        await work.ask("w7", InspectMachine())
