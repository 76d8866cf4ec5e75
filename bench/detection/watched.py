"""Faults that no kernel line tells, in virtual time: the collectors' own polls, then diagnosis and controller."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.detection import states
from bench.detection.decided import configuration, name_of, node_of, tell
from bench.detection.occasions import Poll, Told, occasions
from bench.detection.plants import GPUS, Expected, serial
from bench.detection.states import State
from bench.detection.table import Name, Seen
from hostler.agent.check_plugins import Plugin, Schedule, observations, read_answers
from hostler.agent.collectors import (
    dcgm_reader,
    gpu_state,
    host_reader,
    network_ports,
    nvml_state_reader,
    nvml_twin,
    pstore,
)
from hostler.agent.collectors.dcgm_state import DcgmState
from hostler.agent.collectors.gpu_state import GpuState
from hostler.agent.collectors.host_state import HostState
from hostler.agent.collectors.network_ports import Ports
from hostler.agent.limited_command import CommandEnd
from hostler.agent.local_observation import LocalObservation
from hostler.core.diagnose.debounce import RepeatedReading, settle, told
from hostler.core.state.assets import Binding
from hostler.core.state.model import Condition, Node, Observation, Part
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.polling.bmc_readings import FIRMWARE, FIRMWARE_S, PARTS, SENSORS, ReadingTask
from hostler.sim.bmc.emulated_machine import Machine, PartFault, gpu_server
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import in_memory
from tests.kit import NOW, Drive

STATES = Path(__file__).parents[2] / "tests/nvml_states"
HEALTHY = "healthy_h100x8"
SETTLED_S = 300.0
"""So long everything is healthy before the fault shows."""
PATIENCE_S = 1_800.0
"""A fault that nothing was recorded of within this time, or so many looks, is missed."""
LOOKS = 8
ORIGIN = "https://10.0.0.1"


def twin_addresses() -> tuple[str, ...]:
    """The PCI addresses of the recorded GPUs."""
    recorded = json.loads((STATES / f"{HEALTHY}.json").read_text())
    words = [gpu["nvmlDeviceGetPciInfo"]["struct"]["busId"] for gpu in recorded["gpus"]]
    return tuple(f"{word[4:8]}:{word[9:14]}".lower() for word in words)


def expected_of(state: State, node: int) -> Expected:
    """Returns the record that the state on the n-th node must leave."""
    part = state.part.replace("{gpu3}", serial(node, 3))
    return Expected(state.family, state.name, state.condition, part, state.beside)


def watched(place: Path, shown: tuple[State, ...]) -> list[Seen]:
    """Returns the records of each state, each on a node of its own; `place` is an empty directory."""
    return [_one(place / str(number), state) for number, state in enumerate(shown)]


def _one(place: Path, state: State) -> Seen:
    place.mkdir()
    drive = _cell(state)
    expected = expected_of(state, 0)
    life = _Life(drive, *_poll_of(state, place, drive.node(name_of(0))))
    before, _ = life.lived(SETTLED_S, bad=False)
    after, latency_s = life.lived(max(PATIENCE_S, LOOKS * life.period_s), bad=True, expected=expected)
    return Seen(expected, (*before, *after), latency_s)


def _cell(state: State) -> Drive:
    addresses = tuple((f"pci:{pci}", serial(0, gpu)) for gpu, pci in enumerate(twin_addresses()))
    bindings = (Binding("serial", "SN1", NOW), Binding("bmc", ORIGIN, NOW))
    node = replace(node_of(0), addresses=addresses, bindings=bindings)
    if isinstance(state.shows, states.Stays):
        node = replace(node, phase=state.shows.phase, assignment=None)
    drive = Drive(configuration(), [node])
    if isinstance(state.shows, states.Unlisted):
        drive.work.clear()  # what the next list tells
        drive.restart()
    return drive


class _Life:
    """One node that somebody looks at every `period_s`."""

    def __init__(self, drive: Drive, period_s: float, poll: Poll) -> None:
        self._drive = drive
        self.period_s = period_s
        self._poll = poll
        self._posts = 0

    def lived(self, until_s: float, *, bad: bool, expected: Expected | None = None) -> tuple[list[Name], float | None]:
        """Records until the request has come true or time is over, and after how long the request had.

        What begins begins just after a look, so the time until the next one counts.
        """
        recorded: list[Name] = []
        drive = self._drive
        begun = drive.now
        while (passed_s := (drive.now - begun).total_seconds()) < until_s:
            for one in self._poll((drive.now - NOW).total_seconds(), bad):
                recorded += [(condition.type, condition.part) for condition in self._tell(one)]
            if expected is not None and expected.wanted in recorded:
                return recorded, passed_s + self.period_s
            drive.now += timedelta(seconds=self.period_s)
        return recorded, None

    def _tell(self, one: Told) -> tuple[Condition, ...]:
        drive, node = self._drive, name_of(0)
        if isinstance(one, LocalObservation | Observation):
            return tell(drive, node, [self._posted(one)])
        before = {condition.id: condition for condition in drive.node(node).conditions}
        drive.step(one)
        return tuple(c for c in drive.node(node).conditions if before.get(c.id) is not c)

    def _posted(self, one: LocalObservation | Observation) -> Observation:
        self._posts += 1
        spool = f"s{self._posts}"
        if isinstance(one, Observation):
            return replace(one, sequence=1, spool=spool)
        node = name_of(0)
        return Observation(
            node,
            one.kind,
            "agent",
            spool,
            1,
            self._drive.boot_of(node),
            text=one.text,
            count=one.count,
            facility=one.facility,
            facts=one.facts,
            parts=one.parts,
        )


def _poll_of(state: State, place: Path, node: Node) -> tuple[float, Poll]:
    """How often somebody looks, and what a look gives."""
    match state.shows:
        case states.Nvml(state=name, fresh=fresh):
            return 10.0, _gpus(name, fresh=fresh)
        case states.Dcgm(fields=fields):
            return 30.0, _exported(fields)
        case states.Files() | states.Facts():
            files = state.shows.files if isinstance(state.shows, states.Files) else {}
            facts = state.shows.facts if isinstance(state.shows, states.Facts) else {}
            return 30.0, _host(place, files, facts)
        case states.Gone() | states.Extra() | states.Alike():
            return 3600.0, _inventory(state.shows)
        case states.Check():
            return 300.0, _check(state.shows)
        case states.Sensor() | states.Entry() | states.Ails() | states.Runs():
            return _of_bmc(state.shows, node)
        case states.Crash(log=log):
            return 60.0, _crash(place, log)
        case _:
            return occasions(state.shows)


_CHILD_ENDS = {
    "hang_in_one_call": gpu_state.nothing("hung", "no answer within 20 s", "0000:61:00 nvmlDeviceGetTemperature"),
    "child_crash": gpu_state.nothing("crashed", "the child ended with -11"),
}
"""The agent's view of a child that hangs or dies (`machine.RealHostMachine.gpus`); the real path has the real child."""


def _gpus(name: str, *, fresh: bool) -> Poll:
    follower = GpuState("boot", None)
    reports = {state: _report(state) for state in (HEALTHY, name)}

    def poll(now_s: float, bad: bool) -> list[Told]:
        if fresh and not bad:
            return []
        return [*follower.take(reports[name if bad else HEALTHY], now_s)]

    return poll


def _report(state: str) -> gpu_state.GpuPoll:
    if state in _CHILD_ENDS:
        return _CHILD_ENDS[state]
    reader = nvml_state_reader.NvmlStateReader(nvml_twin.NvmlTwin(str(STATES / f"{state}.json")), lambda _: None)
    return gpu_state.decoded(json.dumps({**reader.report(0.0), "gpus_on_pci": GPUS}).encode())


def _exported(fields: dict[str, float]) -> Poll:
    follower, address = DcgmState("boot", None), twin_addresses()[3]
    named = f'{{gpu="3",UUID="GPU-3",pci_bus_id="0000{address}.0",device="nvidia3"}}'

    def poll(now_s: float, bad: bool) -> list[Told]:
        shown = states.HEALTHY_EXPORTED | (fields if bad else {})
        page = "".join(f"DCGM_FI_DEV_{name}{named} {value}\n" for name, value in shown.items())
        return [*follower.take(gpu_state.decoded(json.dumps(dcgm_reader.report(page)).encode()), now_s)]

    return poll


def _host(place: Path, files: dict[str, str], facts: dict[str, Any]) -> Poll:
    follower, looks = HostState("boot", None), Ports()
    write(place, states.HEALTHY_HOST)
    fresh = bool(facts.get("memory_gib"))

    def poll(now_s: float, bad: bool) -> list[Told]:
        nonlocal follower, fresh
        if bad:
            write(place, files)
        if bad and fresh:
            follower, fresh = HostState("another boot", None), False
        read = {**host_reader.read(place), **states.HEALTHY_FACTS, "space_free_percent:/": 40.0}
        read |= {"inodes_free_percent:/": 40.0, "drive:nvme3n1": "ok", "drive_used_percent:nvme3n1": 3}
        seen = follower.take({**read, **(facts if bad else {})}, now_s)
        if news := looks.news(network_ports.read(place), now_s):
            seen.append(LocalObservation("ports", now_s, facts={f"port:{port}": word for port, word in news.items()}))
        return [*seen]

    return poll


def write(place: Path, files: dict[str, str]) -> None:
    """Files of a node below a directory."""
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")


def gpu_parts(node: int, gone: str = "") -> tuple[Part, ...]:
    """The GPUs of the n-th node, without the one in the slot `gone`."""
    return tuple(
        Part(serial(node, gpu), "gpu", "NVIDIA H100 80GB HBM3", f"gpu{gpu}")
        for gpu in range(GPUS)
        if f"gpu{gpu}" != gone
    )


def _inventory(shows: states.Gone | states.Extra | states.Alike) -> Poll:
    parts = gpu_parts(0, shows.slot)
    if isinstance(shows, states.Extra):
        parts = (*parts, Part("GPU-of-another", "gpu", shows.model, shows.slot))
    elif isinstance(shows, states.Alike):
        parts = (*parts, replace(parts[0], slot=shows.slot))

    def poll(now_s: float, bad: bool) -> list[Told]:
        return [LocalObservation("inventory", now_s, facts={"covers": "gpu"}, parts=parts if bad else gpu_parts(0))]

    return poll


def _check(check: states.Check) -> Poll:
    plugin = Plugin("site", Path("/etc/hostler/checks.d/site"), Schedule())

    def poll(now_s: float, bad: bool) -> list[Told]:
        ended = CommandEnd(check.code if bad else 0, (check.says if bad else "OK").encode())
        return [*observations(plugin, read_answers(ended), now_s)]

    return poll


def machine_of(number: int) -> Machine:
    """The n-th emulated server with its BMC, switched on."""
    machine = Machine(f"s{number}", gpu_server(f"SN{number}", GPUS))
    machine.start_powered()
    return machine


def ail(machine: Machine, sensor: states.Sensor) -> None:
    """The machine's readings become so."""
    machine.sensors |= sensor.values
    machine.fans |= sensor.fans
    machine.supplies |= sensor.supplies
    machine.leaks |= sensor.leaks


def _of_bmc(shows: states.ByBmc, node: Node) -> tuple[float, Poll]:
    match shows:
        case states.Sensor():
            return 10.0, _looked_at(node, SENSORS, lambda machine: ail(machine, shows))
        case states.Ails(part=part, health=health):
            return shows.every_s, _looked_at(node, PARTS, lambda machine: machine.sicken(part, PartFault(health)))
        case states.Runs(component=name, version=version):
            return FIRMWARE_S, _looked_at(node, FIRMWARE, lambda machine: machine.firmware.update({name: version}))
        case states.Entry():
            return 900.0, _entries(shows, node)


def _looked_at(node: Node, errand: ReadingTask, befall: Callable[[Machine], None]) -> Poll:
    """Run an errand of the watch's errands, again and again, as far as it has repeated itself."""
    machine = machine_of(1)
    reader, heard = _reader_of(machine), dict[str, RepeatedReading]()
    sku = configuration().skus[node.sku]

    def poll(_now_s: float, bad: bool) -> list[Told]:
        if bad:
            befall(machine)
        read = at_once(_read(reader, node, errand))
        settled = settle(heard, read, errand.subjects(read, node, sku))
        told(heard)
        return [settled.observation] if settled.news else []

    return poll


async def _read(reader: RedfishReader, node: Node, errand: ReadingTask) -> Observation:
    return await errand.read(await reader.look(node))


def _entries(entry: states.Entry, node: Node) -> Poll:
    machine = machine_of(1)
    reader, cursor, written = _reader_of(machine), "", False
    machine.write_log("OK", "The server was powered on.", NOW)

    def poll(_now_s: float, bad: bool) -> list[Told]:
        nonlocal cursor, written
        if bad and not written:
            for _ in range(entry.times):
                machine.write_log(entry.severity, entry.message, NOW + timedelta(hours=1))
            written = True
        first = not cursor
        found, cursor = at_once(_log(reader, node, cursor))
        return [] if first else [*found]

    return poll


async def _log(reader: RedfishReader, node: Node, cursor: str) -> tuple[tuple[Observation, ...], str]:
    return await (await reader.look(node)).entries(cursor)


def _reader_of(machine: Machine) -> RedfishReader:
    """The Redfish driver over the emulated service, with no socket between."""
    service = Service([machine])

    async def exchange(method: str, path: str, body: Body, _headers: dict[str, str]) -> HttpResponse:
        bare, _, query = path.partition("?")
        reply = service.handle(ServiceRequest(method, bare, query, in_memory(body)), NOW)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return HttpResponse(reply.status, msgspec.json.encode(reply.body) if reply.body is not None else b"", headers)

    client = RedfishClient(exchange, ORIGIN)
    return RedfishReader(lambda *_: client)


def at_once(work: Any) -> Any:
    """Run a coroutine that never waits for anything."""
    try:
        work.send(None)
    except StopIteration as finished:
        return finished.value
    raise AssertionError("it waited for something")


class _Kept:
    """A spool in memory."""

    def __init__(self) -> None:
        self.seen: list[LocalObservation] = []
        self._cursors: dict[str, bytes] = {}

    def append(self, observations: list[LocalObservation], cursor: tuple[str, bytes] | None = None) -> None:
        self.seen += observations
        if cursor is not None:
            self._cursors[cursor[0]] = cursor[1]

    def cursor(self, name: str) -> bytes | None:
        return self._cursors.get(name)


def _crash(place: Path, log: str) -> Poll:
    kept = _Kept()

    def poll(now_s: float, bad: bool) -> list[Told]:
        if bad:
            write(place, {"dmesg-erst-1": log})
        pstore.tell_crashes(kept, now_s, (place,))
        seen, kept.seen = kept.seen, []
        return [*seen]

    return poll
