"""The boot answer: what a node boots into, from its phase, its plan and the configuration. Pure.

Every phase has one, and "hold" says why: a machine that asks amid a firmware update, or after it has failed,
waits at the boot loader with that reason on its console, and does not restart again and again.
"""

from msgspec import Struct

from hostler.core.state.boot import HOLD, LOCAL_DISK, BootConfiguration
from hostler.core.state.fleet import Fleet
from hostler.core.state.model import HoldKind, Node, Phase
from hostler.core.state.operations import WriteFirmware

IMAGE = "image"

BOOTS: dict[Phase, str] = {
    Phase.registered: HOLD,
    Phase.initializing: "production",
    Phase.onboard: "production",
    Phase.seatrial: "inspection",
    Phase.zap: "firmware",
    Phase.zap_fail: HOLD,
    Phase.test: "burn_in",
    Phase.production: "production",
    Phase.triage: "inspection",
    Phase.debug: "inspection",
    Phase.rma: HOLD,
    Phase.retired: HOLD,
}
"""Boot of a node by its phase: an image of the catalogue, or hold."""

INSTEAD = {"burn_in": "production", "firmware": "inspection", "inspection": "production"}
"""The image in the place of one that the catalogue does not have."""

_HELD = {
    Phase.registered: "its bring-up has not begun",
    Phase.zap_fail: "its firmware update failed; a person decides (hostler node zap-again, or triage)",
    Phase.rma: "it is with its vendor",
    Phase.retired: "it is retired",
}


class BootTarget(Struct, frozen=True):
    """The boot of a node: `kind` is image (by its name in the catalogue), local-disk, or hold with its reason."""

    kind: str
    image: str = ""
    reason: str = ""


def boot_target_of(fleet: Fleet, node: Node) -> BootTarget:
    """The node's boot answer as things stand."""
    boots = fleet.configuration_of(node).boot
    if boots is None:
        return BootTarget(HOLD, reason="the configuration has no section boot")
    if why := _must_not_boot(fleet, node):
        return BootTarget(HOLD, reason=why)
    chosen = boots.phases.get(node.phase.value, BOOTS[node.phase])
    if node.phase is Phase.production and node.pool in boots.pools:
        chosen = boots.pools[node.pool]
    if chosen == HOLD:
        return BootTarget(HOLD, reason=_HELD.get(node.phase, f"the configuration holds nodes in {node.phase.value}"))
    if chosen == LOCAL_DISK:
        return BootTarget(LOCAL_DISK)
    image = in_catalogue(boots, chosen)
    if not image:
        return BootTarget(HOLD, reason=f"the catalogue has no image '{chosen}' for {node.phase.value}")
    return BootTarget(IMAGE, image)


def in_catalogue(boots: BootConfiguration, wanted: str) -> str:
    """The image of this name, or what stands in its place, "" where the catalogue has neither."""
    while wanted and wanted not in boots.images:
        wanted = INSTEAD.get(wanted, "")
    return wanted


def _must_not_boot(fleet: Fleet, node: Node) -> str:
    """Why the node may boot into nothing now, whatever its phase; "" where it may."""
    operations = (*node.under_way, *node.settling)
    flashing = next((one.act for one in operations if isinstance(one.act, WriteFirmware)), None)
    if flashing is not None:
        return f"firmware of {flashing.component} is being written"
    held = next((h for h in fleet.holds_of(node.id) if h.kind in (HoldKind.physical_work, HoldKind.power)), None)
    return f"{held.owner} holds it ({held.kind.value}): {held.reason}" if held is not None else ""
