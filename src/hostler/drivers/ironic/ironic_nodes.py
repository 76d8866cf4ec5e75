"""Power and the next boot of machines that an Ironic has: asked of Ironic, which keeps its own record of both.

A machine is asked for by the node's id, and is the node's where both have one BMC. Ironic's own work on it (cleaning,
deploying, inspecting) is waited for; a state that it calls failed, and maintenance that somebody set, are a person's.
"""

from hostler.core.state.machine_work import PROVISIONER
from hostler.core.state.model import Node, Operation, Outcome
from hostler.core.state.operations import SetBootNetwork
from hostler.drivers.ironic import wire
from hostler.drivers.ironic.client import IronicClient
from hostler.drivers.ironic.free_nodes import refuse_unless_free, state_told
from hostler.drivers.ironic.ironic_work import WORK_KINDS, IronicWork
from hostler.drivers.ironic.wire import IronicNode
from hostler.ports import OperationDriver, RefusedError

_TARGETS = {"power_on": ("on", "power on"), "power_off": ("off", "power off")}
_SET_BOOT = "set_boot_network"
PXE = "pxe"
IRONIC_KINDS = frozenset({*_TARGETS, _SET_BOOT})


class IronicNodes:
    """The BMC driver's hand, which asks Ironic for power and boots of nodes whose provisioner it is."""

    def __init__(self, bmc: OperationDriver, ironic: IronicClient) -> None:
        self.kinds = bmc.kinds | WORK_KINDS
        self._bmc = bmc
        self._ironic = ironic
        self._work = IronicWork(ironic)

    async def perform(self, operation: Operation, node: Node) -> Outcome:
        """Ask Ironic once, or hand it on. Raises PortError."""
        if not _is_ironics(operation, node):
            return await self._bmc.perform(operation, node)
        there = await self._known(node)
        act = operation.act
        if operation.kind in WORK_KINDS:
            return await self._work.forward(operation, there)
        if isinstance(act, SetBootNetwork):
            if act.target != PXE:
                raise RefusedError("Ironic hands no boot address to a BMC; let the machine boot by PXE (boot.mac_only)")
            return await self._boot(operation, there)
        return await self._power(operation, there)

    async def observe(self, operation: Operation, node: Node) -> Outcome:
        """Read from Ironic whether it has happened, and change nothing. Raises PortError."""
        if not _is_ironics(operation, node):
            return await self._bmc.observe(operation, node)
        there = await self._known(node)
        if operation.kind in WORK_KINDS:
            return await self._work.seen(operation, there)
        if operation.kind == _SET_BOOT:
            return await self._boot_seen(operation, there, "not_done")
        want, _ = _TARGETS[operation.kind]
        if there.power == want and not there.target_power:
            return _outcome(operation, "done", f"power is {there.power}")
        return _outcome(operation, "unknown" if there.target_power else "not_done", _power_told(there))

    async def revoke(self, operation: Operation, node: Node) -> None:
        """Have the BMC driver call it off; nothing that Ironic was asked for can be."""
        if not _is_ironics(operation, node) and operation.kind in self._bmc.kinds:
            await self._bmc.revoke(operation, node)

    async def _known(self, node: Node) -> IronicNode:
        """Ironic's record of the node. Raises RefusedError where it is another machine's."""
        there = await self._ironic.node(node.id)
        ours = wire.bmc_place(node.binding("bmc"))
        if not wire.is_same(there.bmc, ours):
            raise RefusedError(
                f"binding mismatch: the BMC of {node.id} is {ours or 'not bound'}, Ironic's node of that name has "
                f"{there.bmc or 'none over Redfish'}; nothing was done; correct one of them"
            )
        return there

    async def _power(self, operation: Operation, there: IronicNode) -> Outcome:
        want, target = _TARGETS[operation.kind]
        if there.power == want and not there.target_power:
            return _outcome(operation, "done", f"power was {want} already; nothing was sent")
        refuse_unless_free(there)
        await self._ironic.set_power(there.uuid, target)
        return _outcome(operation, "unknown", f"Ironic was asked for {target}")

    async def _boot(self, operation: Operation, there: IronicNode) -> Outcome:
        if there.provision == wire.NEW and not there.target:
            if there.last_error:
                raise RefusedError(f"Ironic cannot manage it: {there.last_error}; correct its driver_info there")
            await self._ironic.provision(there.uuid, "manage")
            return _outcome(operation, "unknown", "Ironic verifies that it reaches the machine's BMC")
        refuse_unless_free(there)
        await self._ironic.set_boot_device(there.uuid, PXE)
        return await self._boot_seen(operation, there, "unknown")

    async def _boot_seen(self, operation: Operation, there: IronicNode, unseen: str) -> Outcome:
        if there.reservation or there.provision not in wire.FREE:
            at_work = there.reservation or there.target
            return _outcome(operation, "unknown" if at_work else "not_done", state_told(there))
        device, _kept = await self._ironic.boot_device(there.uuid)
        told = f"Ironic reads {device or 'no boot device'} from its BMC"
        return _outcome(operation, "done" if device == PXE else unseen, told)


def _is_ironics(operation: Operation, node: Node) -> bool:
    return operation.kind in WORK_KINDS or (node.provisioner == PROVISIONER and operation.kind in IRONIC_KINDS)


def _power_told(there: IronicNode) -> str:
    towards = f", and is on its way to {there.target_power}" if there.target_power else ""
    error = f": {there.last_error}" if there.last_error else ""
    return f"power is {there.power or 'not known to Ironic'}{towards}{error}"


def _outcome(operation: Operation, result: str, detail: str) -> Outcome:
    return Outcome(operation.id, operation.node, result, detail[:500], attempt=operation.attempt)
