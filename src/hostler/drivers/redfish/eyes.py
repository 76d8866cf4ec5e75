"""One look at a node through its BMC: power at once, readings on request. Judging them happens elsewhere."""

from collections.abc import Callable

from hostler.core.model import Node, Observation
from hostler.drivers.redfish import survey, wire
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.exchange import parse_address
from hostler.drivers.redfish.hand import check_identity
from hostler.engine.ports import RefusedError

SPOOL = "bmc"


class RedfishSight:
    """What one BMC shows of a node that it was just seen to be. `power` is on, off or unknown."""

    def __init__(self, client: RedfishClient, system: wire.System, node: Node) -> None:
        self.power = system.power if system.power in {"on", "off"} else "unknown"
        self._client = client
        self._system = system
        self._node = node

    async def sensors(self) -> Observation:
        """The readings as facts, not numbered yet; why one is missing stands in `text`. Raises PortError."""
        read = await survey.sensors(self._client, self._system)
        return Observation(self._node.id, "sensors", "bmc", SPOOL, 0, text="; ".join(read.gaps), facts=read.facts)


class RedfishEyes:
    """Looks at BMCs through the clients that the Hand uses. A reading counts only once it repeats: not decided here."""

    def __init__(self, clients: Callable[[str], RedfishClient]) -> None:
        self._clients = clients

    async def look(self, node: Node) -> RedfishSight:
        """Read the node's system. Raises PortError; another machine (binding mismatch) is RefusedError."""
        if not node.binding("bmc"):
            raise RefusedError(f"node {node.id} has no bmc binding; record its BMC's address first")
        address = parse_address(node.binding("bmc"))
        client = self._clients(address.origin)
        system = await client.system(address.system)
        check_identity(client.origin, system, node)
        return RedfishSight(client, system, node)
