"""Emulated BMCs of each vendor behind the driver, and what an independent reader counts in their documents."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from hostler.core.state.model import Node, Part
from hostler.drivers.redfish import bmc_event_logs, firmware_inventory, part_inventory, sensor_reader
from hostler.drivers.redfish.bmc_reader import RedfishReader
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import Body, HttpResponse
from hostler.drivers.redfish.operation_driver import RedfishDriver
from hostler.ports import UnreachableError
from hostler.sim.bmc import vendor_behaviour
from hostler.sim.bmc.emulated_machine import Delays, Hardware, Machine, Quirks, gpu_server
from hostler.sim.bmc.redfish_service import Service, ServiceRequest
from hostler.sim.bmc.redfish_twin import NamedImages, images_by_name, in_memory
from hostler.sim.bmc.resource_parts import Document
from hostler.sim.bmc.vendors import VENDORS
from tests.contract.redfish_world import START, node_at

SERIAL = "7Q4R2Z9"
COUNTED = ("firmware", "serials", "sensors", "log", "leaks")
GB200_SENSORS = 227
"""As many as a capture of one tray shows."""
_NOTHING = {"", "N/A", "000000000000", "To be filled by O.E.M."}
_GPUS = {"gh200": 1, "gb200": 4, "gb300": 4, "bluefield3": 0, "nvswitch": 0}
_PARTLESS = ("bluefield3", "nvswitch")


def hardware_of(vendor: str) -> Hardware:
    """A machine of the vendor's kind: eight GPUs, where it is not one of those with fewer or none."""
    made = gpu_server(SERIAL, _GPUS.get(vendor, 8))
    if vendor in _PARTLESS:
        made = msgspec.structs.replace(made, parts=())
    if vendor == "gb200":
        regulators = {f"vr{number}_temp_c": 40.0 for number in range(GB200_SENSORS - len(made.sensors))}
        made = msgspec.structs.replace(made, sensors=made.sensors | regulators)
    leaks = {"ColdPlate": "OK", "Manifold": "OK", "ColdPlate_2": "OK", "Manifold_2": "OK"}
    return msgspec.structs.replace(made, leaks=leaks if vendor in {"gb200", "gb300", "nvswitch"} else {})


class Bmc:
    """One machine as a vendor's BMC shows it, switched on, with three entries in its log; `asked` is what was asked."""

    def __init__(self, vendor: str) -> None:
        self.machine = Machine("m1", hardware_of(vendor), Delays(), Quirks(vendor=vendor))
        self.machine.start_powered()
        for number in range(3):
            self.machine.write_log("Warning", f"Entry {number}", START)
        self.service = Service([self.machine])
        self.asked: list[tuple[str, str]] = []
        self.sent: list[tuple[str, dict[str, str], object]] = []
        self.now = START
        self.client = RedfishClient(self.exchange, "https://b")
        self.node: Node = node_at("https://b", SERIAL)
        self.reader = RedfishReader(lambda *_: self.client)
        self.driver = RedfishDriver(lambda *_: self.client, lambda: self.now, NamedImages(images_by_name))

    async def exchange(self, method: str, path: str, body: Body, headers: dict[str, str]) -> HttpResponse:
        self.asked.append((method, path))
        if method != "GET":
            is_json = headers.get("Content-Type", "").startswith("application/json")
            self.sent.append(
                (path, headers, msgspec.json.decode(in_memory(body) or b"null") if is_json else in_memory(body))
            )
        bare, _, query = path.partition("?")
        reply = self.service.handle(ServiceRequest(method, bare, query, in_memory(body), headers), self.now)
        if reply.dropped:
            raise UnreachableError(f"no answer to {method} {bare}")
        return HttpResponse(reply.status, msgspec.json.encode(reply.body) if reply.body is not None else b"")

    def documents(self) -> dict[str, Document]:
        """Documents that the BMC would show, by path."""
        return vendor_behaviour.pages(self.machine, VENDORS[self.machine.quirks.vendor], START)


class Counted(Struct, frozen=True):
    """How many of each a reader found."""

    firmware: int
    serials: int
    sensors: int
    log: int
    leaks: int


async def read_by_the_driver(bmc: Bmc) -> Counted:
    """Reads one BMC with the driver."""
    system = await bmc.client.system()
    found = await part_inventory.inventory(bmc.client, system)
    read = (await sensor_reader.sensors(bmc.client, system)).facts
    entries, _ = await bmc_event_logs.read(bmc.client, system)
    return Counted(
        firmware=len([one for one in await firmware_inventory.components(bmc.client, system) if not one.staged]),
        serials=len({system.serial, *_serials(found.parts)}),
        sensors=len([name for name in read if name.endswith(("_c", "_rpm", "_w")) and "_limit_" not in name]),
        log=len(entries),
        leaks=len([name for name in read if name.startswith("leak_")]),
    )


def _serials(found: Iterable[Part]) -> set[str]:
    return {part.serial for part in found if part.serial}


def in_the_document(bmc: Bmc) -> Counted:
    """The same, counted over the documents by their paths, without anything of the driver's."""
    docs = bmc.documents()
    readings = [value for path, doc in docs.items() for value in _values(path, doc)]
    inlined = [item for doc in docs.values() if isinstance(items := doc.get("PowerSupplies"), list) for item in items]
    detectors = [path for path, doc in docs.items() if "/LeakDetectors/" in path and doc.get("DetectorState")]
    return Counted(
        firmware=len([path for path, doc in docs.items() if "/FirmwareInventory/" in path and doc.get("Version")]),
        serials=len({_stripped(doc) for doc in (*docs.values(), *inlined)} - _NOTHING),
        sensors=len(readings),
        log=len([path for path in docs if "/Entries/" in path]),
        leaks=len(detectors),
    )


def _stripped(doc: Document) -> str:
    serial = doc.get("SerialNumber")
    return serial.strip() if isinstance(serial, str) else ""


def _values(path: str, doc: Document) -> list[object]:
    """The numbers that a document shows: a sensor's, or a Thermal's of temperatures and fans."""
    if "/Sensors/" in path:
        return [doc["Reading"]] if doc["Reading"] is not None else []
    listed = [doc.get(key) for key in ("Temperatures", "Fans")] if path.endswith("/Thermal") else []
    items = [item for items in listed if isinstance(items, list) for item in items]
    values = [item.get("ReadingCelsius", item.get("Reading")) for item in items]
    return [value for value in values if value is not None]


async def table() -> str:
    """The page's table: of each vendor's documents, how much the driver read, and what a look costs."""
    head = "| machine | firmware | serial numbers | sensors | log entries | leak detectors | requests of a look |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for vendor in VENDORS:
        bmc = Bmc(vendor)
        read, there = await read_by_the_driver(bmc), in_the_document(bmc)
        counts = [f"{getattr(read, one)} / {getattr(there, one)}" for one in COUNTED]
        bmc.asked.clear()
        await (await bmc.reader.look(bmc.node)).sensors()
        lines.append(f"| {' | '.join((vendor, *counts, str(len(bmc.asked))))} |")
    return "\n".join(lines) + "\n"
