"""A chassis's power and cooling over Redfish: one set of readings however a BMC shows them, and what faults become."""

from collections.abc import Callable

import msgspec
import pytest

from hostler.core.diagnose.judge import judge
from hostler.core.state.model import Observation, Part, Severity
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.ports import UnreachableError
from hostler.sim.bmc.emulated_machine import Machine, PartFault, Quirks
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import in_memory
from hostler.sim.bmc.request_faults import RequestFaultRule
from tests.contract.redfish_world import START, a_machine, node_at
from tests.kit import a_node, configuration

NODE = node_at("https://b", "SN1")


class Bmc:
    """A machine behind a client, with the paths that were asked for. A path that ends so is never answered."""

    def __init__(self, quirks: Quirks | None = None) -> None:
        self.machine: Machine = a_machine(quirks=quirks)
        self.machine.start_powered()
        self.service = Service([self.machine])
        self.asked: list[str] = []
        self.silent_at = "nothing"
        client = RedfishClient(self._exchange, "https://b")
        self.reader = RedfishReader(lambda *_: client)

    async def _exchange(self, method: str, path: str, body: Body, _headers: dict[str, str]) -> HttpResponse:
        self.asked.append(path)
        if path.endswith(self.silent_at):
            raise UnreachableError("no answer")
        bare, _, query = path.partition("?")
        reply = self.service.handle(ServiceRequest(method, bare, query, in_memory(body)), START)
        return HttpResponse(reply.status, msgspec.json.encode(reply.body))

    async def sensors(self) -> Observation:
        self.asked.clear()
        return await (await self.reader.look(NODE)).sensors()


async def facts_of(quirks: Quirks) -> dict[str, object]:
    return dict((await Bmc(quirks).sensors()).facts)


@pytest.mark.parametrize(("levels", "requests"), [(0, 36), (1, 7), (2, 6), (3, 4), (6, 4)])
async def test_the_readings_are_the_same_however_deep_a_bmc_inlines(levels: int, requests: int) -> None:
    """Mutant: a subsystem's members are taken to be inlined without looking; a BMC of two levels then has no fans."""
    bmc = Bmc(Quirks(expands=levels))
    await bmc.sensors()
    assert (await bmc.sensors()).facts == await facts_of(Quirks(expands=6))
    assert len(bmc.asked) == requests


@pytest.mark.parametrize(("levels", "requests"), [(0, 41), (1, 11), (2, 10), (3, 7), (6, 7)])
async def test_a_bmc_that_is_met_for_the_first_time_is_asked_little(levels: int, requests: int) -> None:
    """Mutant: what was read whole to learn the layout is read again."""
    bmc = Bmc(Quirks(expands=levels))
    assert (await bmc.sensors()).facts == await facts_of(Quirks(expands=6))
    assert len(bmc.asked) == requests


@pytest.mark.parametrize(
    "rule",
    [
        RequestFaultRule("*Subsystem", status=400, skip=2),
        RequestFaultRule("*Subsystem", status=501, skip=2),
        RequestFaultRule("*Subsystem", status=400, times=1),
        RequestFaultRule("*ThermalSubsystem", patch={"Fans": {"Members@odata.nextLink": "/more"}}, times=1),
        RequestFaultRule("*ThermalSubsystem", patch={"Fans": {"Members@odata.count": 99}}, times=1),
        RequestFaultRule("*ThermalSubsystem", patch={"Fans": {"Members": [{"@odata.id": "/x"}]}}, times=1),
    ],
)
async def test_a_bmc_that_does_not_inline_what_it_promised_is_read_link_by_link(rule: RequestFaultRule) -> None:
    """Mutant: `deep` never ends; half a list counts as the whole of it, or each look fails anew."""
    bmc = Bmc()
    whole = await facts_of(Quirks())
    bmc.service.faults.add(rule)
    for _ in range(2):
        read = dict((await bmc.sensors()).facts)
        assert {name: read.get(name) for name in whole} == whole
    assert not any("levels=3" in path for path in bmc.asked)


async def test_a_bmc_that_inlines_half_without_naming_it_is_learned_link_by_link() -> None:
    """Mutant: `_BELOW` is not asked; a link that is missing where a subsystem was read whole is then never known."""
    bmc = Bmc()
    half = {"@odata.id": "", "Members@odata.nextLink": "/more"}
    bmc.service.faults.add(RequestFaultRule("*ThermalSubsystem", patch={"Fans": half}, times=1))
    for _ in range(2):
        assert dict((await bmc.sensors()).facts) == await facts_of(Quirks())


async def test_a_bmc_that_hangs_over_a_deep_question_is_not_asked_it_again() -> None:
    """Mutant: silence does not end `deep`; such a BMC's readings are never seen."""
    bmc = Bmc()
    bmc.silent_at = "($levels=3)"
    with pytest.raises(UnreachableError):
        await bmc.sensors()
    assert (await bmc.sensors()).facts == await facts_of(Quirks())


async def test_an_older_bmc_tells_of_redundancy_in_its_own_way() -> None:
    """RedundancySet of Thermal and Power. Mutant: `wire.redundancy` is asked of the newer resources only."""
    newer, older = await facts_of(Quirks()), await facts_of(Quirks(older=True))
    words = {name: word for name, word in newer.items() if name.endswith("_health")}
    assert words.items() <= older.items()
    assert {"power_redundancy_health", "cooling_redundancy_health", "fan3_health", "psu5_health"} <= words.keys()


def unwell(*names: str, health: str = "Critical") -> Callable[[Machine], None]:
    def befall(machine: Machine) -> None:
        for name in names:
            machine.sicken(name, PartFault(health))

    return befall


def leak(word: str) -> Callable[[Machine], None]:
    return lambda machine: machine.leaks.update(manifold=word)


def heat(machine: Machine) -> None:
    machine.sensors["gpu0_temp_c"] = 99.0


FAULTS: list[tuple[Callable[[Machine], None], dict[tuple[str, str], Severity]]] = [
    (
        unwell("fan3"),
        {
            ("cooling.fan", "fan3"): Severity.degraded,
            ("cooling.redundancy", "cooling_redundancy"): Severity.warning,
        },
    ),
    (
        unwell("fan2", "fan3"),
        {
            ("cooling.fan", "fan2"): Severity.degraded,
            ("cooling.fan", "fan3"): Severity.degraded,
            ("cooling.redundancy", "cooling_redundancy"): Severity.degraded,
        },
    ),
    (unwell("psu0"), {("power.supply", "psu0"): Severity.degraded}),
    (
        unwell("psu0", "psu1"),
        {
            ("power.supply", "psu0"): Severity.degraded,
            ("power.supply", "psu1"): Severity.degraded,
            ("power.redundancy", "power_redundancy"): Severity.warning,
        },
    ),
    (leak("Warning"), {("cooling.leak_suspected", "manifold"): Severity.degraded}),
    (leak("Critical"), {("cooling.leak", "manifold"): Severity.catastrophic}),
    (heat, {("thermal.over_limit", "gpu0_temp"): Severity.catastrophic}),
]


LEAKS = frozenset({"cooling.leak", "cooling.leak_suspected"})
"""Older BMCs show no leak detectors."""


@pytest.mark.parametrize(
    ("befall", "expected", "older"),
    [
        (befall, expected, older)
        for befall, expected in FAULTS
        for older in (False, True)
        if not older or LEAKS.isdisjoint(kind for kind, _ in expected)
    ],
)
async def test_what_befalls_the_plant_becomes_its_condition(
    befall: Callable[[Machine], None], expected: dict[tuple[str, str], Severity], older: bool
) -> None:
    """Mutants: "redundancy" is taken for a supply's name; a fan's word is not read; a wet detector merely warns."""
    bmc = Bmc(Quirks(older=older))
    well = judge(await bmc.sensors(), a_node("a", slots=()), configuration().skus["h100"])
    assert [finding for finding in well if finding.standing] == []
    befall(bmc.machine)
    found = judge(await bmc.sensors(), a_node("a", slots=()), configuration().skus["h100"])
    standing = {(f.type, f.part): f.severity for f in found if f.standing}
    near = ("thermal.near_limit", "gpu0_temp")
    assert {key: grave for key, grave in standing.items() if key != near} == expected
    for name in ("fan2", "fan3", "psu0", "psu1"):
        bmc.machine.heal(name)
    bmc.machine.leaks["manifold"] = "OK"
    bmc.machine.sensors["gpu0_temp_c"] = 40.0
    again = judge(await bmc.sensors(), a_node("a", slots=()), configuration().skus["h100"])
    over = {(f.type, f.part) for f in again if not f.standing}
    assert over >= {key for key in expected if key[0] != "cooling.leak"}, "a leak is over when a person says so"


# parts

LINK = "NVIDIA.1.0.NVLinkDown"


@pytest.mark.parametrize(
    ("slot", "kind", "condition"),
    [
        ("gpu3", "gpu", "part.unhealthy"),
        ("cpu1", "cpu", "part.unhealthy"),
        ("memory7", "memory", "part.unhealthy"),
        ("drive2", "drive", "storage.failed"),
        ("nic5", "nic", "part.unhealthy"),
    ],
)
async def test_a_part_that_its_bmc_calls_unwell_is_known_by_its_serial(slot: str, kind: str, condition: str) -> None:
    """Mutant: one of the collections is not asked."""
    bmc = Bmc()
    serials = tuple((part.slot, part.serial) for part in bmc.machine.parts)
    node, sku = a_node("a", slots=serials), configuration().skus["h100"]
    look = await bmc.reader.look(NODE)
    assert look.health == "ok"
    well = judge(await look.parts(), node, sku)
    assert {finding.part for finding in well} == {*dict(serials).values(), "system", "cover sys-SN1"}
    assert len(serials) == 58
    assert not any(finding.standing for finding in well)
    bmc.machine.sicken(slot, PartFault("Critical", LINK, "The link is down."))
    look = await bmc.reader.look(NODE)
    assert look.health == ("ok" if kind == "nic" else "critical"), "a system does not sum up its adapters"
    (unwell,) = (finding for finding in judge(await look.parts(), node, sku) if finding.standing)
    assert (unwell.type, unwell.part) == (condition, dict(serials)[slot])
    assert (unwell.facts["kind"], unwell.facts["says"]) == (kind, f"{LINK}: The link is down.")


async def test_parts_that_cannot_be_read_say_nothing_of_themselves_and_the_others_are_read() -> None:
    """Mutant: a collection that fails ends the reading."""
    bmc = Bmc()
    bmc.service.faults.add(RequestFaultRule("*/Processors", status=500, times=0))
    read = await (await bmc.reader.look(NODE)).parts()
    assert read.facts["complete"] is False
    assert "500" in read.text
    assert {name.split(":")[1] for name in read.facts if name.startswith("health:")} == {
        "memory",
        "drive",
        "nic",
        "system",
    }


async def test_a_bmc_that_lists_parts_without_end_is_read_in_part() -> None:
    """Mutant: no limit. Each of ten thousand "drives" would be a condition of the node."""
    bmc = Bmc()
    bmc.machine.parts = tuple(Part(f"M{n}", "memory", "DDR5", f"memory{n}") for n in range(1000))
    read = await (await bmc.reader.look(NODE)).parts()
    assert sum(name.startswith("health:memory:") for name in read.facts) == 256
    assert (read.facts["complete"], "1000 memory parts" in read.text) == (False, True)


async def test_versions_are_read_without_what_is_being_written_or_waits() -> None:
    """Mutant: a version that is staged counts as the one that runs."""
    bmc = Bmc()
    bmc.machine.firmware_staged["BIOS"] = "2.0.0"
    bmc.machine.start_update("HMC", "http://images/x", START)
    read = await (await bmc.reader.look(NODE)).firmware()
    assert read.facts == {f"firmware.{name}": "1.0.0" for name in ("BIOS", "BMC", "GPU", "Retimer")}
