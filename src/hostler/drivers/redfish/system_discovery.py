"""Says which machines are behind a BMC's address, for whoever is about to bind a node to it."""

import asyncio
from collections.abc import Callable

from hostler.drivers.redfish.client import RedfishClient
from hostler.drivers.redfish.http_exchange import parse_address
from hostler.ports import PortError

ASK_S = 5.0
MAX_CHOICES = 16


class Introduction:
    """Asks BMCs through the clients that the Hand uses. What a BMC does not tell now is no choice."""

    def __init__(self, clients: Callable[[str], RedfishClient]) -> None:
        self._clients = clients

    async def __call__(self, bmc: str) -> tuple[str, ...]:
        """The bindings that may be meant, each with the machine's serial where it shows one; none where silent."""
        try:
            address = parse_address(bmc)
            async with asyncio.timeout(ASK_S):
                client = self._clients(address.origin)
                client.begin()
                machines = await client.machines()
        except (PortError, TimeoutError):
            return ()
        named = [f"{address.origin}#{one.id}" + (f" (serial {one.serial})" if one.serial else "") for one in machines]
        return tuple(named[:MAX_CHOICES])
