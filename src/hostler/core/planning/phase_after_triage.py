"""Chooses where a node goes on whose examination found nothing: no stage of Day 1 is passed over by way of triage."""

from hostler.core.planning.firmware_plan import firmware_rows
from hostler.core.state.configuration import Sku
from hostler.core.state.hardware import bios_differs
from hostler.core.state.model import Node, Phase

_GOES_ON = {
    Phase.initializing: Phase.onboard,
    Phase.seatrial: Phase.seatrial,
    Phase.zap_fail: Phase.zap,
}
"""The phase that a node left for triage → the one where it goes on: it has booted, and nothing after that is done."""


def phase_after_triage(node: Node, sku: Sku | None) -> Phase:
    """Test, unless a stage before it is due: the one it fell out of, or zap where its BMC lists what is to be written.

    Firmware that nobody has listed, or that may not be written (a downgrade), sends nobody back.
    """
    before = _GOES_ON.get(node.came_from) if node.came_from is not None else None
    if before is not None:
        return before
    if sku is not None and bios_differs(node, sku.hardware):
        return Phase.zap
    rows = firmware_rows(node, sku) if sku is not None else ()
    return Phase.zap if any(row.reported and row.act in ("write", "activate") for row in rows) else Phase.test
