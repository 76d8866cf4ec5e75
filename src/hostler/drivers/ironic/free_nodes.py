"""Whether an Ironic's machine may be acted on now, and how its state is told."""

from hostler.drivers.ironic import wire
from hostler.drivers.ironic.wire import IronicNode
from hostler.ports import BusyTargetError, RefusedError


def refuse_unless_free(there: IronicNode) -> None:
    """Raises RefusedError where a person has to act first, BusyTargetError while Ironic itself is at work."""
    if there.provision in wire.FAILED:
        way = f"openstack baremetal node {wire.FAILED[there.provision]} {there.name or there.uuid}"
        raise RefusedError(f"{state_told(there)}; look into it, then run `{way}`")
    if there.maintenance:
        way = f"openstack baremetal node maintenance unset {there.name or there.uuid}"
        fault = f" (fault {there.fault})" if there.fault else ""
        raise RefusedError(f"it is in maintenance in Ironic{fault}: {there.maintenance}; run `{way}` once that is over")
    if there.reservation:
        raise BusyTargetError(f"Ironic's conductor {there.reservation} has it locked; it is asked again")
    if there.provision not in wire.FREE:
        raise BusyTargetError(f"{state_told(there)}; it is asked again")


def state_told(there: IronicNode) -> str:
    """The provision state, where it leads, and Ironic's own error."""
    towards = f" on its way to {there.target}" if there.target else ""
    error = f": {there.last_error}" if there.last_error else ""
    return f"Ironic has it in '{there.provision}'{towards}{error}"
