"""One look at a node through its BMC: power and sensors as observations. Judging them happens elsewhere."""

from collections.abc import Callable

from hostler.core.model import Node, Observation
from hostler.drivers.redfish import survey
from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.exchange import parse_address
from hostler.drivers.redfish.hand import check_identity
from hostler.engine.ports import RefusedError

SPOOL = "bmc"


class RedfishEyes:
    """Polls BMCs through the clients that the Hand uses. A reading counts only once it repeats: not decided here."""

    def __init__(self, clients: Callable[[str], RedfishClient]) -> None:
        self._clients = clients

    async def poll(self, node: Node, sequence: int) -> tuple[Observation, Observation]:
        """Power (on, off or unknown) and sensors, numbered `sequence` and the one after it.

        Why a sensor is missing stands in the observation's `text`. Raises PortError; another machine's readings
        (binding mismatch) are RefusedError and never observations.
        """
        if not node.binding("bmc"):
            raise RefusedError(f"node {node.id} has no bmc binding; record its BMC's address first")
        address = parse_address(node.binding("bmc"))
        client = self._clients(address.origin)
        system = await client.system(address.system)
        check_identity(client.origin, system, node)
        read = await survey.sensors(client, system)
        power = system.power if system.power in {"on", "off"} else "unknown"
        return (
            Observation(node.id, "power", "bmc", SPOOL, sequence, facts={"power": power}),
            Observation(node.id, "sensors", "bmc", SPOOL, sequence + 1, text="; ".join(read.gaps), facts=read.facts),
        )
