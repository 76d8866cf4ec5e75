"""Finds by which action a BMC takes the mains off its machine and back: vendors name it each in their own way.

Sources: the vendor modules of NVIDIA's libredfish (HPE, Lenovo, Supermicro, NVIDIA). DGX H100 and Dell offer no such
action.
"""

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import Document, child

ACTIONS = {
    "#HpeComputerSystemExt.SystemReset": "AuxCycle",
    "#LenovoComputerSystem.SystemReset": "ACPowerCycle",
    "#OemSystemExtensions.Reset": "ACCycle",
    "#NvidiaChassis.AuxPowerReset": "AuxPowerCycle",
}
"""Vendor's action → the type of reset that it takes."""


class AcCycle(Struct, frozen=True):
    """An offered action: where it is asked for, and by which type of reset."""

    target: str
    kind: str


def offered(resource: Document) -> AcCycle | None:
    """The AC cycle that a system or chassis offers, None where it offers none."""
    within = child(resource, "Actions", "Oem")
    for action, kind in ACTIONS.items():
        target = child(within, action).get("target")
        if isinstance(target, str) and target:
            return AcCycle(target, kind)
    return None
