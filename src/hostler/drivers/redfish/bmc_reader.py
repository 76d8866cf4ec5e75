"""One look at a node through its BMC: power at once, readings on request. Judging them happens elsewhere."""

from collections.abc import Callable

from msgspec.structs import replace

from hostler.core.state.assets import BMC_CERTIFICATE
from hostler.core.state.bmc_certificate import ShownCertificate
from hostler.core.state.model import Facts, Node, Observation
from hostler.drivers.redfish import (
    bmc_event_logs,
    firmware_inventory,
    part_inventory,
    sensor_reader,
    wire,
    wire_event_log,
    wire_firmware,
)
from hostler.drivers.redfish.client import NotOfferedError, RedfishClient
from hostler.drivers.redfish.http_exchange import bmc_address
from hostler.drivers.redfish.operation_driver import check_identity
from hostler.drivers.redfish.shown_certificate import shown_certificate

SPOOL = "bmc"
LOG_SOURCE = "bmc_log"
HANDSHAKE_S = 30.0
MAX_ENTRIES = 64
"""Of one reading of an event log; a log that is flooded is told of, not copied."""


class BmcLook:
    """One look at a node through its BMC, whose identity was just checked.

    `power` is on, off or unknown.

    `health` is the worst word that the system itself shows of its parts, `version` its BIOS's: when they change, parts
    and firmware are worth asking.
    """

    def __init__(self, client: RedfishClient, system: wire.System, node: Node) -> None:
        self.power = system.power if system.power in {"on", "off"} else "unknown"
        self.health = system.health
        self.version = system.bios
        self._client = client
        self._system = system
        self._node = node

    async def sensors(self) -> Observation:
        """The readings as facts, not numbered yet; why one is missing stands in `text`. Raises PortError."""
        read = await sensor_reader.sensors(self._client, self._system)
        return Observation(self._node.id, "sensors", "bmc", SPOOL, 0, text="; ".join(read.gaps), facts=read.facts)

    async def parts(self) -> Observation:
        """Words of health of the parts as facts, not numbered yet; gaps stand in `text`. Raises PortError."""
        read = await part_inventory.health(self._client, self._system)
        facts = read.facts | {"complete": read.complete}
        return Observation(self._node.id, "part_health", "bmc", SPOOL, 0, text="; ".join(read.gaps), facts=facts)

    async def firmware(self) -> Observation:
        """Versions that run as facts "firmware.NAME", not numbered yet; one that is being written is left out.

        Raises PortError, NotOfferedError where the BMC has no firmware inventory.
        """
        components = await firmware_inventory.components(self._client, self._system)
        settled = wire_firmware.versions(component for component in components if not component.updating)
        facts: Facts = {f"firmware.{name}": version for name, version in settled.items()}
        return Observation(self._node.id, "firmware", "bmc", SPOOL, 0, facts=facts)

    async def inventory(self) -> Observation:
        """The parts with a serial number, not numbered yet; gaps stand in `text`. Raises PortError."""
        read = await part_inventory.inventory(self._client, self._system)
        seen = tuple(replace(part, node=self._node.id) for part in read.parts)
        facts: Facts = {"covers": ",".join(read.covers), "complete": read.complete, **read.hardware}
        return Observation(
            self._node.id, "inventory", "bmc", SPOOL, 0, text="; ".join(read.gaps)[:1000], facts=facts, parts=seen
        )

    async def certificate(self) -> ShownCertificate | None:
        """The certificate that the BMC shows to a handshake, None over plain HTTP. Raises PortError.

        One that is recorded and not shown is told by the look itself.
        """
        origin = self._client.origin
        if not origin.startswith("https://"):
            return None
        shown = await shown_certificate(origin, HANDSHAKE_S)
        known = self._node.binding(BMC_CERTIFICATE)
        return shown if known in ("", shown.fingerprint) else None

    async def entries(self, cursor: str) -> tuple[tuple[Observation, ...], str]:
        """The event log's entries behind the cursor, oldest first and not numbered yet, and the new cursor.

        MAX_ENTRIES at most, the newest; the first of them says how many were passed over. None where the BMC keeps no
        log. Raises PortError.
        """
        try:
            entries, now = await bmc_event_logs.read(self._client, self._system, cursor)
        except NotOfferedError:
            return (), cursor
        kept = entries[-MAX_ENTRIES:]
        lost = len(entries) - len(kept)
        return tuple(self._entry(entry, now, 0 if n else lost) for n, entry in enumerate(kept)), now

    def _entry(self, entry: wire_event_log.LogEntry, cursor: str, lost: int) -> Observation:
        facts: Facts = {"severity": entry.severity, "entry": entry.id, "created": entry.created, "cursor": cursor}
        facts |= {"sensor": entry.sensor} if entry.sensor else {}
        facts |= {"lost": lost} if lost else {}
        return Observation(self._node.id, "event_log", LOG_SOURCE, LOG_SOURCE, 0, text=entry.message, facts=facts)


class RedfishReader:
    """Looks at BMCs through the clients that the Hand uses. A reading counts only once it repeats: not decided here."""

    def __init__(self, clients: Callable[[str, str], RedfishClient]) -> None:
        self._clients = clients

    async def look(self, node: Node) -> BmcLook:
        """Read the node's system. Raises PortError; another machine (binding mismatch) is RefusedError."""
        address = bmc_address(node)
        client = self._clients(address.origin, node.binding(BMC_CERTIFICATE))
        client.begin()
        system = await client.system(address.system)
        check_identity(client.origin, system, node)
        return BmcLook(client, system, node)
