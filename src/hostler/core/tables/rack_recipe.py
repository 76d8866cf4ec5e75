"""The steps of a rack's bring-up, one table. A run is a frozen copy of it; the order is that of power and water.

Deadlines are divided by the policy's `time_scale` when a run is frozen.
"""

from hostler.core.state.assets import AssetKind
from hostler.core.state.rack_runs import RackStep

HOUR_S = 3_600.0
BRING_UP = "rack_bring_up"
"""The name under which guards are asked."""


def _seen(name: str, stage: str, ends_when: str) -> RackStep:
    return RackStep(f"{name}_seen", 2 * HOUR_S, stage, versions=False, ends_when=ends_when)


RACK_STEPS: tuple[RackStep, ...] = (
    _seen("power_shelves", "power shelves", "each shelf is read and its supplies are well"),
    RackStep("power_shelf_firmware", 4 * HOUR_S, writes=AssetKind.power_shelf),
    RackStep("power_shelves", HOUR_S, "power shelves", ends_when="each shelf shows the bundle's versions"),
    _seen("coolant_units", "coolant units", "each unit is read and says that it is well"),
    RackStep("coolant_unit_firmware", 2 * HOUR_S, writes=AssetKind.coolant_unit),
    RackStep("coolant_units", HOUR_S, "coolant units", ends_when="each unit shows the bundle's versions"),
    RackStep("leak_detectors", 2 * HOUR_S, "leak detectors", ends_when="every detector says that it is dry"),
    _seen("switch_trays", "switch trays", "each tray is read and says that it is well"),
    RackStep("switch_tray_firmware", 12 * HOUR_S, writes=AssetKind.switch_tray),
    RackStep("switch_trays", HOUR_S, "switch trays", ends_when="each tray shows the bundle's versions"),
    RackStep("fabric_managers", HOUR_S, "fabric managers", ends_when="the fabric manager says that it is configured"),
    RackStep("compute_trays", 7 * 24 * HOUR_S, "compute trays", ends_when="each node has come through its tests"),
)
"""Without power nothing is read, what is wet is not switched on, and no node is tested over links that are down."""
