"""Restarts a node from inside, with the secret of that boot handed to its BMC before."""

from msgspec.structs import replace

from hostler.core.state.model import Node, Operation, Outcome
from hostler.drivers.boot.boot_secret_handover import BootSecretHandover
from hostler.ports import OperationDriver


class NetworkReboot:
    """The driver of reboots, with the boot of a node that boots over the network set first. Raises only PortError."""

    kinds = frozenset({"reboot"})

    def __init__(self, rebooter: OperationDriver, handover: BootSecretHandover) -> None:
        self._rebooter = rebooter
        self._handover = handover

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Hand over the secret, then reboot."""
        said = await self._handover.before_reboot(operation, node)
        outcome = await self._rebooter.perform(operation, node)
        return replace(outcome, detail=f"{outcome.detail}; {said}".strip("; ")[:500]) if said else outcome

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Ask the driver that reboots whether it has happened."""
        return await self._rebooter.observe(operation, node)

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the driver that reboots call it off."""
        await self._rebooter.revoke(operation, node)
